"""Losses: four ways for an nn.Module to carry a loss and its gradient, and the losses themselves.

Read `fake_backward.py`, `loss_attribute.py`, `autograd_function.py` and `tensor_hook.py` first:
each defines one layer, which carries any loss, and names the function that differentiates. The
losses are in `content.py`, `match.py` and `style.py`, once each.
"""

from styletransfer.losses import autograd_function, fake_backward, loss_attribute, tensor_hook
from styletransfer.losses.content import ContentDistance
from styletransfer.losses.distance import Distance, PositionalDistance, mean_square
from styletransfer.losses.match import MatchDistance
from styletransfer.losses.mode import LossLayer, LossMode, Term
from styletransfer.losses.pixels import temporal_loss, total_variation
from styletransfer.losses.style import GRAM, MOMENTS, WASSERSTEIN, StyleDistance, StyleMeasure

__all__ = [
    "GRAM",
    "LOSS_MODES",
    "STYLE_LOSSES",
    "ContentDistance",
    "Distance",
    "LossLayer",
    "LossMode",
    "MatchDistance",
    "PositionalDistance",
    "StyleDistance",
    "StyleMeasure",
    "Term",
    "mean_square",
    "temporal_loss",
    "total_variation",
]

LOSS_MODES: dict[str, LossMode] = {
    mode.name: mode
    for mode in (fake_backward.MODE, loss_attribute.MODE, autograd_function.MODE, tensor_hook.MODE)
}
STYLE_LOSSES: dict[str, StyleMeasure] = {
    measure.name: measure
    for measure in (
        GRAM,
        MOMENTS,
        WASSERSTEIN,
    )
}
