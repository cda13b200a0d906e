"""What an objective compares: its settings, checked and resolved once, and what they can be for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from styletransfer.config import STYLE_LAYER_FACTORS, ObjectiveConfig
from styletransfer.errors import UserError
from styletransfer.features.extractor import FeatureExtractor
from styletransfer.losses import StyleMeasure, get_style_loss
from styletransfer.modes import LossMode
from styletransfer.objective.inputs import Inputs


@dataclass(frozen=True)
class Criterion:
    """Which losses act at which layers, and with which weights."""

    contents: Mapping[str, float]  # layer -> linear weight of its content loss, above 0
    styles: Mapping[str, float]  # layer -> linear weight of its style losses, above 0
    measure: StyleMeasure  # how styles are compared
    tv_weight: float  # linear weight of the picture's total variation
    is_relative: bool  # each loss is divided by its value for features that are all zero
    propagation: str  # how a region reaches a layer's positions; see `positions.at_layers`

    @classmethod
    def of(cls, config: ObjectiveConfig) -> Self:
        """Resolve settings (UserError: they contradict each other, or nothing acts)."""
        measure = get_style_loss(config.style_loss)
        for key, choices in (("normalization", "target none"), ("propagation", "average inside")):
            value, (one, other) = getattr(config, key), choices.split()
            if value not in (one, other):
                raise UserError(f"unknown objective.{key} {value!r}; choose {one} or {other}")
        _check_weight("tv_weight", config.tv_weight)
        contents = _by_layer(
            "content", config.content_weight, config.content_layers, config.content_layer_weights
        )
        factors = config.style_layer_weights or [
            STYLE_LAYER_FACTORS.get(layer, 1.0) for layer in config.style_layers
        ]
        styles = _by_layer("style", config.style_weight, config.style_layers, factors)
        if not contents and not styles:
            raise UserError(
                "all content and style weights are 0: nothing to optimise; "
                "raise objective.content_weight or objective.style_weight"
            )
        relative = config.normalization == "target"
        return cls(contents, styles, measure, config.tv_weight, relative, config.propagation)

    @property
    def layers(self) -> list[str]:
        """The layers at which losses act, content before style."""
        return [*self.contents, *self.styles]


def _by_layer(
    kind: str, weight: float, layers: list[str], factors: list[float]
) -> dict[str, float]:
    """Return layer -> weight, those above zero."""
    _check_weight(f"{kind}_weight", weight)
    if factors and len(factors) != len(layers):
        raise UserError(
            f"objective.{kind}_layers names {len(layers)} layers but "
            f"objective.{kind}_layer_weights holds {len(factors)} numbers; give one for each"
        )
    if twice := sorted({layer for layer in layers if layers.count(layer) > 1}):
        raise UserError(f"objective.{kind}_layers names {', '.join(twice)} twice")
    for factor in factors:
        _check_weight(f"{kind}_layer_weights", factor)
    pairs = zip(layers, factors or [1.0] * len(layers), strict=True)
    return {layer: weight * factor for layer, factor in pairs if weight * factor > 0}


def _check_weight(name: str, weight: float) -> None:
    if not 0 <= weight < float("inf"):
        raise UserError(f"objective.{name}={weight} must be a finite number, 0 or more")


def check_size(extractor: FeatureExtractor, size: tuple[int, int], name: str) -> None:
    """Check that the deepest layer has a position left at (height, width), or name what works."""
    deepest = list(extractor.layers)[-1]
    stride = extractor.stride(deepest)
    height, width = size
    if min(height, width) < stride:
        raise UserError(
            f"{name} comes down to {width} x {height} pixels, too small for {deepest}: the shorter "
            f"side needs at least {stride}; raise size, lower scales, or name shallower layers"
        )


def check_pictures(extractor: FeatureExtractor, pictures: Inputs) -> None:
    """Check the content and the style images of an objective; see `check_size`."""
    names = ["the content image", "the style image"]
    if len(pictures.styles) > 1:
        names[1:] = [f"style image {number + 1}" for number in range(len(pictures.styles))]
    for image, name in zip(pictures.tensors, names, strict=True):
        check_size(extractor, (image.shape[2], image.shape[3]), name)


def smallest_tile(extractor: FeatureExtractor, criterion: Criterion) -> int:
    """Return the stride of the deepest layer in pixels: a tile holds at least one position."""
    ended = extractor.ended_at(criterion.layers)
    return ended.stride(list(ended.layers)[-1])


def check_tile(
    extractor: FeatureExtractor, mode: LossMode, criterion: Criterion, tile: int
) -> None:
    """Refuse tiles of `tile` pixels where there can be none, or none so small."""
    if not mode.is_closed_form:
        raise UserError(
            "tiles need the gradient in closed form: choose loss_mode=autograd_function, or "
            f"tile=off with {mode.name}"
        )
    if tile < (least := smallest_tile(extractor, criterion)):
        raise UserError(
            f"tile={tile} must be at least {least}, the pixels that one position of the deepest "
            "layer stands for; choose tile=auto to have it chosen"
        )
