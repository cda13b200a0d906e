"""The resolved settings of an objective, its losses by name, and checks of picture sizes."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Protocol, Self

import torch
from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.features.extractor import FeatureExtractor
from styletransfer.losses import (
    STYLE_LOSSES,
    LossMode,
    StyleMeasure,
    temporal_loss,
    total_variation,
)
from styletransfer.objective.inputs import Anchor
from styletransfer.settings import STYLE_LAYER_FACTORS, ObjectiveConfig

# For a match loss, each content position is matched to the style position whose features at these
# layers are most similar.
SEARCHED = ("relu2_1", "relu3_1", "relu4_1")


@dataclass(frozen=True)
class Criterion:
    """A criterion says which losses act at which layers, and with which weights."""

    contents: Mapping[str, float]  #: layer -> linear weight of its content loss, above 0
    #: layer -> linear weight, above 0, of its match loss: 1 - cosine with the style's features
    matches: Mapping[str, float]
    styles: Mapping[str, float]  #: layer -> linear weight of its style losses, above 0
    measure: StyleMeasure  #: the statistic that a style loss compares, and the distance
    tv_weight: float  #: linear weight of the picture's total variation
    is_relative: bool  #: content and style losses are divided by their value for zero features
    #: In [0, 1]: before matching, the content is blended with the pastiche by this weight.
    painted_share: float
    seamless: bool  #: each edge of the pastiche continues at the opposite edge

    @classmethod
    def of(cls, config: ObjectiveConfig) -> Self:
        """Return the criterion of the settings (UserError: contradictory, or all weights are 0)."""
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
            config.seamless,
        )

    @property
    def layers(self) -> list[str]:
        """The layers with content, style and match losses; with match losses, also SEARCHED."""
        return [*self.contents, *self.styles, *self.matches, *(SEARCHED if self.matches else ())]


def _by_layer(
    kind: str, weight: float, layers: list[str], factors: list[float]
) -> dict[str, float]:
    """Return layer -> weight * factor, if above 0 (UserError: a layer twice, too few factors)."""
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
    """Return the smallest side of a tile in pixels: the stride of the deepest layer with a loss."""
    ended = extractor.ended_at(criterion.layers)
    return ended.stride(list(ended.layers)[-1])


def tiles_need(mode: LossMode, criterion: Criterion) -> str:
    """Return the setting that tiles need and that is missing, or "" if tiles can be used."""
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


@dataclass(frozen=True)
class Losses:
    """`Losses` are the weighted losses of one evaluation: detached 0-d tensors on the device."""

    #: Name -> weighted loss; "content/relu4_2", "style/relu1_1", "total_variation", "temporal".
    terms: dict[str, Tensor]

    @property
    def total(self) -> Tensor:
        """The objective's value: the sum of all weighted losses, 0-d."""
        return torch.stack(list(self.terms.values())).sum()

    def as_floats(self) -> dict[str, float]:
        """Return name -> loss, and "total" -> their sum; waits for the device."""
        values = torch.stack(list(self.terms.values())).tolist()
        return {"total": sum(values), **dict(zip(self.terms, values, strict=True))}


class Evaluates(Protocol):
    """`Objective` and `TiledObjective` follow this protocol: they return a picture's losses."""

    def evaluate(self, image: Tensor) -> Losses:
        """Return the losses at `image`, and add d(total)/d(image) to `image.grad`.

        `image` is (1, 3, H, W), sRGB in [0, 1], a leaf that requires grad.
        """


def gradient_at(objective: Evaluates, image: Tensor) -> Tensor:
    """Return d(total)/d(image) at `image` (1, 3, H, W), sRGB in [0, 1]; `image` is unchanged."""
    leaf = image.detach().requires_grad_()
    objective.evaluate(leaf)
    assert leaf.grad is not None
    return leaf.grad


def prior_losses(tv_weight: float, anchor: Anchor | None, image: Tensor) -> dict[str, Tensor]:
    """Return the weighted losses on the pixels of `image` (1, 3, H, W) by name, 0-d, with a graph.

    They are total variation, with the linear weight `tv_weight`, and the temporal loss of a film.
    """
    losses = {}
    if tv_weight > 0:
        losses["total_variation"] = tv_weight * total_variation(image)
    if anchor is not None and anchor.weight > 0:
        losses["temporal"] = anchor.weight * temporal_loss(image, anchor.target, anchor.weights)
    return losses


def total(losses: dict[str, Tensor]) -> Tensor | None:
    """Return the sum of the losses, or None if `losses` is empty."""
    return reduce(torch.add, losses.values()) if losses else None
