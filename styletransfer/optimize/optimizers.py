"""The optimisers, set up for a picture, and what one scale hands on to the next."""

from typing import Any

import torch
from torch import Tensor

from styletransfer.config import OptimizerConfig
from styletransfer.errors import UserError
from styletransfer.optimize.lbfgs import LBFGS
from styletransfer.system.storage import is_large, offloaded

# Mean change of a pixel in L-BFGS's first step, which follows the bare gradient: one grey level.
FIRST_STEP = 1 / 255
# Adam's decay rates: the usual first, a faster second, for a gradient that changes with the scale.
ADAM_BETAS = (0.9, 0.99)


def make_optimizer(shift: Tensor, config: OptimizerConfig) -> LBFGS | torch.optim.Adam:
    """Return the optimiser of one picture; each of its steps makes one evaluation.

    Raises:
        UserError: an unknown optimiser, or settings out of range.
    """
    if config.name == "adam":
        adam = torch.optim.Adam([shift], lr=config.learning_rate, betas=ADAM_BETAS, fused=True)
        # As torch would begin them at the first step, but large ones in files.
        step, zeros = torch.zeros((), device=shift.device), torch.zeros_like(shift)
        adam.state[shift] = kept_moments({"step": step, "exp_avg": zeros, "exp_avg_sq": zeros})
        return adam
    if config.name == "lbfgs":
        rate, history = config.learning_rate, config.history
        return LBFGS(shift, history=history, rate=rate, first=FIRST_STEP)
    raise UserError(f"unknown optimizer {config.name!r}; choose lbfgs or adam")


def kept_moments(momentum: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of Adam's moments for the long run, large ones in files."""
    return {
        name: offloaded(each.detach()) if is_large(each.nbytes) else each.detach().clone()
        for name, each in momentum.items()
    }


def resize_momentum(momentum: dict[str, Any], size: tuple[int, int]) -> dict[str, Any]:
    """Return Adam's moments of one scale at the (height, width) of the next."""
    resized = {"step": momentum["step"]}
    for key in ("exp_avg", "exp_avg_sq"):
        resized[key] = torch.nn.functional.interpolate(momentum[key], size, mode="bilinear")
    return resized
