"""The function that style transfer minimises, and its gradient: the seam of the whole design.

Loss modes and precision vary behind `Objective.evaluate`; optimisers and scales vary before it.
"""

from collections import OrderedDict
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from styletransfer.config import ObjectiveConfig
from styletransfer.errors import UserError
from styletransfer.features.extractor import FeatureExtractor
from styletransfer.functions.gram import gram_matrix
from styletransfer.losses.functional import total_variation
from styletransfer.modes import LossMode, Term


@dataclass(frozen=True)
class Losses:
    """The weighted losses of one evaluation, detached and 0-d, still on their device.

    Attributes:
        terms: name -> weighted loss; "content/relu4_2", "style/relu1_1", "total_variation".
    """

    terms: dict[str, Tensor]

    @property
    def total(self) -> Tensor:
        """The objective's value."""
        return torch.stack(list(self.terms.values())).sum()

    def as_floats(self) -> dict[str, float]:
        """Return name -> value, with "total"; waits for the device."""
        values = torch.stack([value.double() for value in self.terms.values()]).tolist()
        return {"total": sum(values), **dict(zip(self.terms, values, strict=True))}


class Objective:
    """The weighted losses of one content and one style image under one network, at one scale.

    Loss modules are transparent layers inserted after their tap, and the network ends with the
    deepest of them, as in the tutorials.

    Args:
        extractor: the frozen network, on the device and in the dtype of the computation.
        mode: how the losses reach the image's gradient.
        config: layers and linear weights.
        content: (1, 3, H, W), sRGB in [0, 1].
        style: (1, 3, h, w), sRGB in [0, 1].

    Raises:
        UserError: an unknown tap, a negative or NaN weight, no positive weight at all, an unknown
            normalisation, or an image too small for the deepest tap.
    """

    def __init__(
        self,
        extractor: FeatureExtractor,
        mode: LossMode,
        config: ObjectiveConfig,
        content: Tensor,
        style: Tensor,
    ) -> None:
        self.mode, self.tv_weight = mode, config.tv_weight
        content_weights, style_weights = layer_weights(config)
        extractor = extractor.ended_at([*content_weights, *style_weights])
        for image, name in ((content, "the content image"), (style, "the style image")):
            check_size(extractor, (image.shape[2], image.shape[3]), name)
        with torch.no_grad():
            contents = extractor(content, content_weights) if content_weights else {}
            styles = extractor(style, style_weights) if style_weights else {}
        relative = config.normalization == "target"
        self.terms: list[Term] = []
        layers: OrderedDict[str, nn.Module] = OrderedDict(preprocess=extractor.preprocess)
        # Names of layers hold no dots or slashes: "style_relu1_1" follows "relu1_1".
        for tap, layer in extractor.ended_at([*contents, *styles]).layers.items():
            layers[tap] = layer
            if tap in contents:
                target = contents.pop(tap)
                weight = content_weights[tap] / (_mean_square(target) if relative else 1.0)
                layers[f"content_{tap}"] = mode.content(target, weight)
                self.terms.append(Term(f"content/{tap}", layers[f"content_{tap}"], weight))
            if tap in styles:
                target = gram_matrix(styles.pop(tap))
                weight = style_weights[tap] / (_mean_square(target) if relative else 1.0)
                layers[f"style_{tap}"] = mode.style(target, weight)
                self.terms.append(Term(f"style/{tap}", layers[f"style_{tap}"], weight))
        self.network = nn.Sequential(layers)

    def evaluate(self, image: Tensor) -> Losses:
        """Return the losses at `image`, and add d(total)/d(image) to `image.grad`.

        Args:
            image: (1, 3, H, W), sRGB in [0, 1], a leaf that requires grad.
        """
        self.network(image)
        prior = self.tv_weight * total_variation(image) if self.tv_weight > 0 else None
        values = self.mode.differentiate(self.terms, prior)
        terms = {term.name: value.detach() for term, value in zip(self.terms, values, strict=True)}
        if prior is not None:
            terms["total_variation"] = prior.detach()
        return Losses(terms)


def layer_weights(config: ObjectiveConfig) -> tuple[dict[str, float], dict[str, float]]:
    """Return tap -> linear weight of the content and of the style losses, those above zero.

    Raises:
        UserError: a weight is negative or not finite, none of them acts, a layer is named twice,
            there are not as many layer weights as layers, or the normalisation is unknown.
    """
    if config.normalization not in ("target", "none"):
        raise UserError(
            f"unknown objective.normalization {config.normalization!r}; choose target or none"
        )
    _check_weight("tv_weight", config.tv_weight)
    content = _by_layer(
        "content", config.content_weight, config.content_layers, config.content_layer_weights
    )
    style = _by_layer("style", config.style_weight, config.style_layers, config.style_layer_weights)
    if not content and not style:
        raise UserError(
            "all content and style weights are 0: nothing to optimise; "
            "raise objective.content_weight or objective.style_weight"
        )
    return content, style


def loss_layers(config: ObjectiveConfig) -> list[str]:
    """Return the layers at which the losses act, content before style.

    Raises:
        UserError: see `layer_weights`.
    """
    content, style = layer_weights(config)
    return [*content, *style]


def check_size(extractor: FeatureExtractor, size: tuple[int, int], name: str) -> None:
    """Check that the deepest tap of `extractor` has a position left at (height, width) `size`.

    Raises:
        UserError: the image is too small; the message names the smallest side that works.
    """
    deepest = list(extractor.layers)[-1]
    stride = extractor.stride(deepest)
    height, width = size
    if min(height, width) < stride:
        raise UserError(
            f"{name} comes down to {width} x {height} pixels, too small for {deepest}: the shorter "
            f"side needs at least {stride}; raise size, lower scales, or name shallower layers"
        )


def _by_layer(
    kind: str, weight: float, layers: list[str], factors: list[float]
) -> dict[str, float]:
    _check_weight(f"{kind}_weight", weight)
    if factors and len(factors) != len(layers):
        raise UserError(
            f"objective.{kind}_layers names {len(layers)} layers but "
            f"objective.{kind}_layer_weights holds {len(factors)} numbers; give one for each"
        )
    if twice := sorted({tap for tap in layers if layers.count(tap) > 1}):
        raise UserError(f"objective.{kind}_layers names {', '.join(twice)} twice")
    for factor in factors:
        _check_weight(f"{kind}_layer_weights", factor)
    pairs = zip(layers, factors or [1.0] * len(layers), strict=True)
    return {tap: weight * factor for tap, factor in pairs if weight * factor > 0}


def _check_weight(name: str, weight: float) -> None:
    if not 0 <= weight < float("inf"):
        raise UserError(f"objective.{name}={weight} must be a finite number, 0 or more")


def _mean_square(target: Tensor) -> float:
    """Return mean(target^2), or 1 where the target is all zero and there is nothing to divide."""
    return target.double().square().mean().item() or 1.0
