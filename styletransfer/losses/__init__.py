"""Losses: four ways for an nn.Module to compute a loss and its gradient, and the loss functions.

Read `fake_backward.py`, `loss_attribute.py`, `autograd_function.py` and `tensor_hook.py` first.
Each file defines `ContentLoss`, `MatchLoss`, `StyleLoss`, and can be read without the others. Each
also defines `MODE`, a `LossMode` (see below), which `get_loss_mode` finds by the file's name.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module

import torch
from torch import Tensor, nn

from styletransfer.losses.squares import content_loss, mean_square, temporal_loss, total_variation
from styletransfer.losses.style import GRAM, MOMENTS, WASSERSTEIN, StyleMeasure

__all__ = [
    "GRAM",
    "LOSS_MODES",
    "STYLE_LOSSES",
    "LossLayer",
    "LossMode",
    "StyleMeasure",
    "Term",
    "content_loss",
    "get_loss_mode",
    "mean_square",
    "temporal_loss",
    "total_variation",
]

# Names of the loss modes; losses/NAME.py defines the mode as `MODE`, and is imported when used.
LOSS_MODES = ("fake_backward", "loss_attribute", "autograd_function", "tensor_hook")
STYLE_LOSSES: dict[str, StyleMeasure] = {
    "gram": GRAM,
    "moments": MOMENTS,
    "wasserstein": WASSERSTEIN,
}


class LossLayer(nn.Module):
    """A loss layer returns its input, and keeps the loss of its last forward in `loss`."""

    loss: Tensor  #: 0-d; `Objective.evaluate` deletes it, because it keeps the graph in memory


@dataclass(frozen=True)
class Term:
    """A term is one content, match or style loss of an objective."""

    name: str  #: kind and layer, such as "style/relu1_1"
    module: LossLayer  #: the layer that computes the loss
    weight: float  #: the linear weight of the loss in the objective


@dataclass(frozen=True)
class LossMode:
    """A loss mode is a way to compute losses in modules and differentiate them w.r.t. the image."""

    name: str  #: the value of the config key loss_mode.name
    #: (target features, linear weight) -> content-loss layer, which returns its input unchanged.
    content: Callable[[Tensor, float], LossLayer]
    #: (target features, linear weight) -> match-loss layer, which returns its input unchanged.
    match: Callable[[Tensor, float], LossLayer]
    #: (target statistic, linear weight, measure, weights of positions or None) -> style-loss layer,
    #: which returns its input unchanged.
    style: Callable[[Tensor, float, StyleMeasure, Tensor | None], LossLayer]
    #: (terms, prior, output) -> weighted losses, one per term. Their gradient, and the gradient of
    #: `prior` (a 0-d loss on the image itself, or None), is added to the image's `.grad`. `output`
    #: is what the network returned: the features after the deepest loss.
    differentiate: Callable[[Sequence[Term], Tensor | None, Tensor], list[Tensor]]
    #: True if the gradient at each position follows from the moments in closed form. The graph then
    #: saves nothing but the features, and a picture can be evaluated in tiles.
    is_closed_form: bool = False


def weighted_losses(terms: Sequence[Term]) -> list[Tensor]:
    """Return weight * loss of each term."""
    return [term.weight * term.module.loss for term in terms]


def differentiate_sum(terms: Sequence[Term], prior: Tensor | None, output: Tensor) -> list[Tensor]:
    """Call `.backward()` once on the sum of weight * loss over all terms; return the losses.

    `prior` is a further loss, already weighted, of the picture itself, such as total variation.
    """
    losses = weighted_losses(terms)
    total = torch.stack(losses).sum()
    if prior is not None:
        total = total + prior
    total.backward()  # type: ignore[no-untyped-call]
    return losses


def get_loss_mode(name: str) -> LossMode:
    """Return the loss mode called `name`, one of LOSS_MODES."""
    mode: LossMode = import_module(f"styletransfer.losses.{name}").MODE
    return mode
