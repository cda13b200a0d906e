"""Four ways to compute losses in an nn.Module and differentiate them, and the losses themselves.

Read `fake_backward.py`, `loss_attribute.py`, `autograd_function.py` and `tensor_hook.py` first.
Each of these files defines one loss mode: a layer, which can compute any loss of its input, and a
function that differentiates the losses of all layers (`autograd_function.py` imports this function
from `loss_attribute.py`). The losses themselves are in `content.py`, `match.py`, `style.py` and
`pixels.py`; every loss mode uses the same ones.
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
