"""Says which losses act at which layers, and checks the sizes of pictures and tiles."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from styletransfer.errors import UserError
from styletransfer.features.extractor import FeatureExtractor
from styletransfer.losses import STYLE_LOSSES, LossMode, StyleMeasure
from styletransfer.settings import STYLE_LAYER_FACTORS, ObjectiveConfig

# For a match loss, each content position is matched to the style position whose features at these
# layers are most similar.
SEARCHED = ("relu2_1", "relu3_1", "relu4_1")


@dataclass(frozen=True)
class Criterion:
    """A criterion says which losses act at which layers, and with which weights."""

    contents: Mapping[str, float]  #: layer -> weight of its content loss, above 0
    #: layer -> weight, above 0, of its match loss: the mean of 1 - cosine over positions
    matches: Mapping[str, float]
    styles: Mapping[str, float]  #: layer -> weight of its style losses, above 0
    measure: StyleMeasure  #: the statistic that a style loss compares, and how it is compared
    tv_weight: float  #: weight of the picture's total variation
    #: Whether each content and style loss is divided by its value for features that are all zero.
    is_relative: bool
    #: In [0, 1]: the search for matches reads a blend of the content and the pastiche so far; this
    #: is the weight of the pastiche.
    painted_share: float
    #: In [0, 1]: how far style losses replace match losses in calm places; None to use `busyness`
    #: of `calm.py`, a measure of the style.
    calm_freedom: float | None
    seamless: bool  #: whether each edge of the pastiche continues at the opposite edge

    @classmethod
    def of(cls, config: ObjectiveConfig) -> Self:
        """Return the criterion of `config`; UserError if settings conflict or no loss is left."""
        measure = STYLE_LOSSES[config.style_loss]
        contents = _by_layer(
            "content", config.content_weight, config.content_layers, config.content_layer_weights
        )
        matches = _by_layer("match", config.match_weight, config.match_layers, [])
        factors = config.style_layer_weights or [
            STYLE_LAYER_FACTORS.get(layer, 1.0) for layer in config.style_layers
        ]
        styles = _by_layer("style", config.style_weight, config.style_layers, factors)
        matches = {layer: weight / len(matches) for layer, weight in matches.items()}
        if not contents and not matches and not styles:
            raise UserError(
                "all content and style weights are 0: nothing to optimise; "
                "raise objective.content_weight or objective.style_weight",
                "objective.content_weight",
            )
        return cls(
            contents,
            matches,
            styles,
            measure,
            config.tv_weight,
            config.normalization == "target",
            config.match_painted,
            config.calm_freedom,
            config.seamless,
        )

    @property
    def layers(self) -> list[str]:
        """All layers with a loss, and if there are match losses, also the layers in SEARCHED."""
        return [*self.contents, *self.styles, *self.matches, *(SEARCHED if self.matches else ())]


def _by_layer(
    kind: str, weight: float, layers: list[str], factors: list[float]
) -> dict[str, float]:
    """Check `layers` and `factors`; return layer -> weight * factor for products above 0."""
    if factors and len(factors) != len(layers):
        raise UserError(
            f"objective.{kind}_layers names {len(layers)} layers but "
            f"objective.{kind}_layer_weights holds {len(factors)} numbers; give one for each",
            f"objective.{kind}_layer_weights",
        )
    if twice := sorted({layer for layer in layers if layers.count(layer) > 1}):
        key = f"objective.{kind}_layers"
        raise UserError(f"{key} names {', '.join(twice)} twice", key)
    pairs = zip(layers, factors or [1.0] * len(layers), strict=True)
    return {layer: weight * factor for layer, factor in pairs if weight * factor > 0}


def check_size(extractor: FeatureExtractor, size: tuple[int, int], name: str) -> None:
    """Raise UserError if an image (height, width) has no position at the deepest layer."""
    deepest = list(extractor.layers)[-1]
    stride = extractor.stride(deepest)
    height, width = size
    if min(height, width) < stride:
        raise UserError(
            f"{name} comes down to {width} x {height} pixels, too small for {deepest}: the shorter "
            f"side needs at least {stride}; raise size, lower scales, or name shallower layers",
            "size",
        )


def smallest_tile(extractor: FeatureExtractor, criterion: Criterion) -> int:
    """Return the smallest side of a tile in pixels: the stride of the deepest layer in use."""
    ended = extractor.ended_at(criterion.layers)
    return ended.stride(list(ended.layers)[-1])


def tiles_need(mode: LossMode, criterion: Criterion) -> str:
    """Return the setting that tiles need, such as "objective.seamless=false", or "" for none."""
    if not mode.is_closed_form:
        return "loss_mode=autograd_function"
    return "objective.seamless=false" if criterion.seamless else ""


def check_tile(
    extractor: FeatureExtractor, mode: LossMode, criterion: Criterion, tile: int
) -> None:
    """Raise UserError if tiles cannot be used, or `tile`, in pixels, is below `smallest_tile`."""
    if needed := tiles_need(mode, criterion):
        raise UserError(f"tiles need {needed}; choose that, or tile=off", "tile")
    if tile < (least := smallest_tile(extractor, criterion)):
        raise UserError(
            f"tile={tile} must be at least {least}, the pixels that one position of the deepest "
            "layer stands for; choose tile=auto to have it chosen",
            "tile",
        )
