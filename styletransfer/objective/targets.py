"""What a picture is compared with: the only place where targets and their weights are made."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from styletransfer.config import ObjectiveConfig
from styletransfer.functions.moments import Moments
from styletransfer.losses import StyleMeasure, get_style_loss, mean_square
from styletransfer.objective.terms import layer_weights


@dataclass(frozen=True)
class Target:
    """What the picture is to have at a layer.

    Attributes:
        value: P (1, C, h, w), the content's features, or the statistic of the style's moments.
        weight: the linear weight of the loss in the objective.
    """

    value: Tensor
    weight: float


@dataclass(frozen=True)
class Targets:
    """All targets of one objective.

    Attributes:
        contents: layer -> content target.
        styles: layer -> style target.
        measure: how styles are compared.
    """

    contents: dict[str, Target]
    styles: dict[str, Target]
    measure: StyleMeasure


def make_targets(
    config: ObjectiveConfig, contents: Mapping[str, Tensor], styles: Mapping[str, Moments]
) -> Targets:
    """Return the targets, with weights as `config.normalization` says.

    Relative to the target, each loss is divided by its value for features that are all zero, so
    that one set of weights serves every network, layer and size.

    Args:
        config: layers, weights, the style loss and the normalisation.
        contents: layer -> the content image's features (1, C, h, w).
        styles: layer -> the moments of the style image's features.
    """
    content_weights, style_weights = layer_weights(config)
    measure = get_style_loss(config.style_loss)
    statistics = {layer: measure.statistic(found) for layer, found in styles.items()}
    relative = config.normalization == "target"

    def weighted(value: Tensor, weight: float, blank: Callable[[Tensor], float]) -> Target:
        return Target(value, weight / (blank(value) or 1.0) if relative else weight)

    return Targets(
        {
            layer: weighted(value, content_weights[layer], _mean_square)
            for layer, value in contents.items()
        },
        {
            layer: weighted(value, style_weights[layer], partial(_blank, measure))
            for layer, value in statistics.items()
        },
        measure,
    )


def _blank(measure: StyleMeasure, target: Tensor) -> float:
    """Return the loss of features that are all zero."""
    return measure.distance(torch.zeros_like(target, dtype=torch.float64), target).item()


def _mean_square(target: Tensor) -> float:
    """Return mean(target^2); row by row, to save memory."""
    rows = target.unbind(-2)
    return sum(mean_square(row.double()).item() for row in rows) / len(rows)
