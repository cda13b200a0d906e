"""Makes the steps of one scale (picture size). A step changes the picture by its gradient."""

from typing import Any

import torch
from torch import Tensor

from styletransfer.objective import Losses
from styletransfer.objective.inputs import Protection
from styletransfer.optimize.best import BestPicture
from styletransfer.optimize.canvas import Canvas
from styletransfer.optimize.ending import Ending
from styletransfer.optimize.optimizers import Adam, Preconditioner, make_optimizer
from styletransfer.settings import OptimizerConfig
from styletransfer.system.checkpoint import check_like, natural


class Descent:
    """A descent optimises a picture at one scale, which is one size of the coarse-to-fine run.

    The caller makes a step in three parts: it calls `picture()`; it evaluates the objective at this
    picture, which sets the picture's gradient; and it calls `step` with the picture and its losses.

    Args:
        start: the picture (1, 3, H, W) to start from.
        config: the settings of the optimiser.
        steps: the number of steps; L-BFGS makes fewer if the loss reaches a plateau.
        protection: the pixels that keep the content image, or None.
    """

    def __init__(
        self,
        start: Tensor,
        config: OptimizerConfig,
        steps: int,
        protection: Protection | None = None,
    ) -> None:
        is_lbfgs, coordinates = config.name == "lbfgs", None
        if is_lbfgs and config.preconditioner > 0:
            coordinates = Preconditioner(start, config.preconditioner)
        self.canvas = Canvas(start, coordinates, protection)
        self.optimizer = make_optimizer(self.canvas.shift, config, steps)
        self.best = BestPicture(self.canvas.hold(start.detach().clamp(0, 1)), config.averaging)
        self.ending = Ending(steps, config.plateau if is_lbfgs else 0.0)
        self.made = 0  # number of steps made

    def picture(self) -> Tensor:
        """Return the picture (1, 3, H, W) in [0, 1] as a new leaf that requires grad."""
        return self.canvas.picture()

    def step(self, picture: Tensor, losses: Losses) -> None:
        """Make a step; `picture` is what `picture()` returned last; its `grad` is overwritten."""
        assert picture.grad is not None
        self.canvas.pull(picture.grad)
        self.optimizer.step()
        self.canvas.shift.grad = None  # frees memory: the next step makes a new gradient
        self.best.remember(losses, picture.detach(), self.made)
        self.made += 1
        if self.ending.is_due(self.made):
            self.ending.look(losses, self.canvas.shift, self.best, self.made)

    @property
    def is_over(self) -> bool:
        """Whether all steps are made, the loss has settled, or the descent gave up."""
        return self.ending.is_reached(self.made)

    def final(self) -> Tensor:
        """Return a new leaf: the running mean if there is one, otherwise the current picture."""
        mean = self.best.mean
        return self.picture() if mean is None else mean.clone().requires_grad_()

    def result(self, final: Tensor, losses: Losses) -> tuple[Tensor, Losses]:
        """Return the running mean, or the best picture if there is none, and that picture's losses.

        `final` is what `final()` returned, and `losses` are its losses.
        """
        if self.best.mean is not None:
            return self.best.mean, losses
        self.best.remember(losses, final.detach(), step=0)
        assert self.best.losses is not None
        return self.best.image, self.best.losses

    def momentum(self) -> dict[str, Tensor] | None:
        """Return Adam's moments for the next scale; None for L-BFGS, which starts afresh there."""
        return self.optimizer.moments if isinstance(self.optimizer, Adam) else None

    def warm_start(self, momentum: dict[str, Tensor] | None) -> None:
        """Start Adam from copies of the last scale's moments; for L-BFGS or None, do nothing."""
        if momentum is not None and isinstance(self.optimizer, Adam):
            self.optimizer.go_on_with(momentum)

    def state_dict(self) -> dict[str, Any]:
        """Return the state: plain values and tensors. Later steps change these tensors.

        Call this method only between steps. To keep a state in memory, copy it by `copy.deepcopy`.
        """
        return {
            "shift": self.canvas.shift.detach(),
            "optimizer": self.optimizer.state_dict(),
            "best": self.best.state_dict(),
            "ending": self.ending.state_dict(),
            "made": self.made,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from the `state` of a descent with the same arguments; do not copy its tensors.

        Raises LookupError, TypeError, AttributeError or ValueError if `state` has another form.
        """
        check_like(state["shift"], self.canvas.shift)
        with torch.no_grad():
            self.canvas.shift.copy_(state["shift"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.best.load_state_dict(state["best"])
        self.ending.load_state_dict(state["ending"])
        self.made = natural(state["made"], most=self.ending.steps)
