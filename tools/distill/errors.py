"""How far a student's activations are from its teacher's."""

from collections.abc import Mapping

import torch
from torch import Tensor

from styletransfer.settings import CONTENT_LAYER, STYLE_LAYERS

LOSS_LAYERS = (*STYLE_LAYERS, CONTENT_LAYER)


def errors(ours: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return relative errors of activations (N, C, h, w) by layer, 0-d: their means, and each.

    "features" and "gram" are means over the layers of style transfer, "inner" is the mean over the
    narrow layers between them.
    """
    by_layer = {layer: _relative(feature, wanted[layer]) for layer, feature in ours.items()}
    grams = {
        f"gram_{layer}": _gram_error(ours[layer], wanted[layer])
        for layer in STYLE_LAYERS
        if layer in ours
    }
    in_losses = {layer: error for layer, error in by_layer.items() if layer in LOSS_LAYERS}
    inner = [error for layer, error in by_layer.items() if layer not in LOSS_LAYERS]
    return {
        "features": torch.stack(list(in_losses.values())).mean(),
        "gram": torch.stack(list(grams.values())).mean(),
        "inner": torch.stack(inner).mean(),
        **in_losses,
        **grams,
    }


def gram(features: Tensor) -> Tensor:
    """Return the Gram matrices (N, C, C) of features (N, C, H, W), divided by C H W."""
    flat = features.float().flatten(2)
    return flat @ flat.transpose(1, 2) / flat[0].numel()


def relative_by_picture(value: Tensor, target: Tensor) -> Tensor:
    """Return ||value - target||^2 / ||target||^2 for each picture of a batch, (N,).

    It is 0 for a picture at which the target is, since there is nothing to be relative to.
    """
    energy = target.flatten(1).square().sum(1)
    error = (value - target).flatten(1).square().sum(1)
    return torch.where(energy > 0, error, 0) / torch.where(energy > 0, energy, 1)


def _relative(ours: Tensor, wanted: Tensor) -> Tensor:
    """Return ||ours - wanted||^2 / ||wanted||^2, 0-d."""
    # Differences in the features' own precision, sums in float32.
    return (ours - wanted).float().square().mean() / wanted.float().square().mean()


def _gram_error(ours: Tensor, wanted: Tensor) -> Tensor:
    """Return ||G - A||^2 / ||A||^2 of Gram matrices, the mean over the batch."""
    return relative_by_picture(gram(ours), gram(wanted)).mean()
