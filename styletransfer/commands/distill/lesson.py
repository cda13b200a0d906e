"""A student cut in two, what its trained part is shown and asked for, and how it answers."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from styletransfer.commands.distill.replay_buffer import LOSS_LAYERS, gram
from styletransfer.config import CONTENT_LAYER, STYLE_LAYERS
from styletransfer.features.extractor import FeatureExtractor


@dataclass(frozen=True)
class Lesson:
    """A batch as the trained part of a student meets it.

    Attributes:
        seen: (N, C, h, w), what the frozen part makes of the pictures.
        wanted: layer -> (N, C, h, w), the teacher's activations in the student's channels.
        contents: (n, C, h, w), what the frozen part makes of the content images of the last n
            pictures, which are the student's own; n is 0 if their gradient does not count.
        gradient: (n, C, h, w), the teacher's `content_gradient` at those pictures.
    """

    seen: Tensor
    wanted: dict[str, Tensor]
    contents: Tensor
    gradient: Tensor


def cut(network: FeatureExtractor, layer: str) -> tuple[FeatureExtractor, FeatureExtractor]:
    """Return `network` up to `layer`, and the rest, which takes that activation; both share it."""
    head = network.ended_at([layer])
    rest = {name: module for name, module in network.layers.items() if name not in head.layers}
    return head, FeatureExtractor(nn.Identity(), rest)


@torch.enable_grad()
def content_gradient(rest: FeatureExtractor, seen: Tensor, contents: Tensor) -> Tensor:
    """Return how the content loss ||F - P||^2 / ||P||^2 of each picture pulls at `seen`.

    Args:
        rest: of a network, from `cut`.
        seen: (n, C, h, w), activations of the pictures where it was cut.
        contents: (n, C, h, w), those of their content images.
    """
    seen = seen.detach().requires_grad_()
    features = rest(seen, [CONTENT_LAYER])[CONTENT_LAYER].float()
    target = rest(contents, [CONTENT_LAYER])[CONTENT_LAYER].float()
    losses = (features - target).square().flatten(1).sum(1) / target.square().flatten(1).sum(1)
    trained = any(parameter.requires_grad for parameter in rest.parameters())
    (gradient,) = torch.autograd.grad(losses.sum(), seen, create_graph=trained)
    return gradient


def errors(
    ours: Mapping[str, Tensor], theirs: Mapping[str, Tensor], *, by_gradient: bool = False
) -> dict[str, Tensor]:
    """Return relative errors of activations (N, C, h, w) by layer, 0-d: their means, and each.

    "features" and "gram" are means over the layers of style transfer, "inner" is the mean over the
    narrow layers between them; to these belongs the content layer where it is learnt `by_gradient`.
    """
    each = {layer: relative(feature, theirs[layer]) for layer, feature in ours.items()}
    grams = {
        f"gram_{layer}": _gram_error(ours[layer], theirs[layer])
        for layer in STYLE_LAYERS
        if layer in ours
    }
    learnt = STYLE_LAYERS if by_gradient else LOSS_LAYERS
    in_losses = {layer: error for layer, error in each.items() if layer in learnt}
    inner = [error for layer, error in each.items() if layer not in learnt]
    return {
        "features": torch.stack(list(in_losses.values())).mean(),
        "gram": torch.stack(list(grams.values())).mean(),
        "inner": torch.stack(inner).mean(),
        **in_losses,
        **grams,
    }


def relative(ours: Tensor, theirs: Tensor) -> Tensor:
    """Return ||ours - theirs||^2 / ||theirs||^2, 0-d."""
    # Differences in the features' own precision, sums in float32.
    return (ours - theirs).float().square().mean() / theirs.float().square().mean()


def _gram_error(ours: Tensor, theirs: Tensor) -> Tensor:
    """Return ||G_s - G_t||^2 / ||G_t||^2, the mean over the batch."""
    target = gram(theirs)
    difference = gram(ours) - target
    return (difference.square().sum((1, 2)) / target.square().sum((1, 2))).mean()
