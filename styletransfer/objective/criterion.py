"""What an objective compares: its settings, checked and resolved once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from styletransfer.config import STYLE_LAYER_FACTORS, ObjectiveConfig
from styletransfer.errors import UserError
from styletransfer.losses import StyleMeasure, get_style_loss

# Layers of the features by which positions are matched; see `matching`.
SEARCHED = ("relu2_1", "relu3_1", "relu4_1")


@dataclass(frozen=True)
class Criterion:
    """Which losses act at which layers, and with which weights."""

    # layer -> linear weight of its content loss, or of that with matched targets, above 0
    contents: Mapping[str, float]
    styles: Mapping[str, float]  # layer -> linear weight of its style losses, above 0
    measure: StyleMeasure  # how styles are compared
    tv_weight: float  # linear weight of the picture's total variation
    is_relative: bool  # each loss is divided by its value for features that are all zero
    matches: frozenset[str]  # the layers whose content targets are matched, see `matching`
    painted_share: float  # of the pastiche so far in what is matched, in [0, 1]
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
        matches = _by_layer("match", config.match_weight, config.match_layers, [])
        if twice := sorted(contents.keys() & matches.keys()):
            raise UserError(
                f"{', '.join(twice)} is in objective.content_layers and in objective.match_layers; "
                "take it out of one of them"
            )
        if not 0 <= config.match_painted <= 1:
            raise UserError(f"objective.match_painted={config.match_painted} must be from 0 to 1")
        factors = config.style_layer_weights or [
            STYLE_LAYER_FACTORS.get(layer, 1.0) for layer in config.style_layers
        ]
        styles = _by_layer("style", config.style_weight, config.style_layers, factors)
        contents |= {layer: weight / len(matches) for layer, weight in matches.items()}
        if not contents and not styles:
            raise UserError(
                "all content and style weights are 0: nothing to optimise; "
                "raise objective.content_weight or objective.style_weight"
            )
        relative = config.normalization == "target"
        return cls(
            contents,
            styles,
            measure,
            config.tv_weight,
            relative,
            frozenset(matches),
            config.match_painted,
            config.propagation,
        )

    @property
    def layers(self) -> list[str]:
        """The layers at which losses act, content before style, and those that are searched."""
        return [*self.contents, *self.styles, *(SEARCHED if self.matches else ())]


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
