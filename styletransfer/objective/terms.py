"""What an objective is made of: its weighted losses, and the checks of its settings."""

from dataclasses import dataclass

import torch
from torch import Tensor

from styletransfer.config import STYLE_LAYER_FACTORS, ObjectiveConfig
from styletransfer.errors import UserError
from styletransfer.losses import get_style_loss


@dataclass(frozen=True)
class Losses:
    """The weighted losses of one evaluation, detached and 0-d, still on their device.

    Attributes:
        terms: name -> weighted loss; "content/relu4_2", "style/relu1_1", "total_variation",
            "temporal".
    """

    terms: dict[str, Tensor]

    @property
    def total(self) -> Tensor:
        """The objective's value."""
        return torch.stack(list(self.terms.values())).sum()

    def as_floats(self) -> dict[str, float]:
        """Return name -> value, with "total"; waits for the device."""
        values = torch.stack(list(self.terms.values())).tolist()
        return {"total": sum(values), **dict(zip(self.terms, values, strict=True))}


def layer_weights(config: ObjectiveConfig) -> tuple[dict[str, float], dict[str, float]]:
    """Return layer -> linear weight of the content and of the style losses, those above zero.

    Raises:
        UserError: a weight is negative or not finite, none of them acts, a layer is named twice,
            there are not as many layer weights as layers, or the normalisation, the style loss
            or the propagation is unknown.
    """
    get_style_loss(config.style_loss)
    if config.normalization not in ("target", "none"):
        raise UserError(
            f"unknown objective.normalization {config.normalization!r}; choose target or none"
        )
    if config.propagation not in ("average", "inside"):
        raise UserError(
            f"unknown objective.propagation {config.propagation!r}; choose average or inside"
        )
    _check_weight("tv_weight", config.tv_weight)
    content = _by_layer(
        "content", config.content_weight, config.content_layers, config.content_layer_weights
    )
    factors = config.style_layer_weights or [
        STYLE_LAYER_FACTORS.get(layer, 1.0) for layer in config.style_layers
    ]
    style = _by_layer("style", config.style_weight, config.style_layers, factors)
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


def _by_layer(
    kind: str, weight: float, layers: list[str], factors: list[float]
) -> dict[str, float]:
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
