"""Losses: four ways for an nn.Module to compute a loss and its gradient, and the loss functions.

Read `fake_backward.py`, `loss_attribute.py`, `autograd_function.py` and `tensor_hook.py` first.
Each file defines `ContentLoss`, `MatchLoss`, `StyleLoss`, and can be read without the others.
"""

from styletransfer.errors import UserError
from styletransfer.losses import autograd_function, fake_backward, loss_attribute, tensor_hook
from styletransfer.losses.mode import LossLayer, LossMode, Term
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
    "get_style_loss",
    "mean_square",
    "temporal_loss",
    "total_variation",
]

LOSS_MODES: dict[str, LossMode] = {
    module.MODE.name: module.MODE
    for module in (fake_backward, loss_attribute, autograd_function, tensor_hook)
}
STYLE_LOSSES: dict[str, StyleMeasure] = {
    "gram": GRAM,
    "moments": MOMENTS,
    "wasserstein": WASSERSTEIN,
}


def get_loss_mode(name: str) -> LossMode:
    """Return the loss mode called `name`, such as "tensor_hook" (UserError: unknown name)."""
    if name not in LOSS_MODES:
        raise UserError(f"unknown loss mode {name!r}; choose one of {', '.join(LOSS_MODES)}")
    return LOSS_MODES[name]


def get_style_loss(name: str) -> StyleMeasure:
    """Return the style loss called `name`, such as "gram" (UserError: unknown name)."""
    if name not in STYLE_LOSSES:
        raise UserError(
            f"unknown objective.style_loss {name!r}; choose one of {', '.join(STYLE_LOSSES)}"
        )
    return STYLE_LOSSES[name]
