"""Four ways to compute losses in an nn.Module and differentiate them, and the losses themselves.

Read `fake_backward.py`, `loss_attribute.py`, `autograd_function.py` and `tensor_hook.py` first.
Each of these files has one loss mode, which is a class with these four members:

- `name`: the value of the key `loss_mode.name`.
- `layer(distance, weight)` returns a layer that computes this loss of its input, keeps it in
  `loss`, and returns its input unchanged. The total loss has `weight` times this loss.
- `differentiate(terms, prior, output)` adds the gradient of all terms and of `prior` (a weighted
  0-d loss of the image's pixels, or None) to the image's `.grad`. It returns the weighted losses of
  the terms. `output` is what the network returned: the features after the deepest loss.
- `is_closed_form`: True if the layers use the gradients written by hand. The only large tensors in
  the graph are then features and targets, and a picture can be evaluated in tiles.

The losses are in `content.py`, `match.py`, `style.py` and `pixels.py`; all modes use the same ones.
"""

from styletransfer.losses.autograd_function import AutogradFunction
from styletransfer.losses.content import ContentDistance, mean_square
from styletransfer.losses.covariance import MOMENTS, WASSERSTEIN
from styletransfer.losses.distance import LossLayer, PositionalDistance
from styletransfer.losses.fake_backward import FakeBackward
from styletransfer.losses.loss_attribute import LossAttribute
from styletransfer.losses.match import MatchDistance
from styletransfer.losses.mode import Distance, Term
from styletransfer.losses.pixels import temporal_loss, total_variation
from styletransfer.losses.style import GRAM, StyleDistance, StyleMeasure
from styletransfer.losses.tensor_hook import TensorHook

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

LossMode = type[FakeBackward] | type[LossAttribute] | type[AutogradFunction] | type[TensorHook]
LOSS_MODES: dict[str, LossMode] = {
    mode.name: mode for mode in (FakeBackward, LossAttribute, AutogradFunction, TensorHook)
}
STYLE_LOSSES: dict[str, StyleMeasure] = {
    measure.name: measure
    for measure in (
        GRAM,
        MOMENTS,
        WASSERSTEIN,
    )
}
