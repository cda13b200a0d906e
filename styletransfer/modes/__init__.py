"""The loss modes: three ways in which a module can carry a loss."""

from styletransfer.errors import UserError
from styletransfer.modes import autograd_function, fake_backward, loss_attribute
from styletransfer.modes.mode import LossMode, Term

__all__ = ["LOSS_MODES", "LossMode", "Term", "get_loss_mode"]

LOSS_MODES: dict[str, LossMode] = {
    module.MODE.name: module.MODE for module in (fake_backward, loss_attribute, autograd_function)
}


def get_loss_mode(name: str) -> LossMode:
    """Return the loss mode called `name` (UserError: there is no such mode)."""
    if name not in LOSS_MODES:
        raise UserError(f"unknown loss mode {name!r}; choose one of {', '.join(LOSS_MODES)}")
    return LOSS_MODES[name]
