"""The optimisation of one picture at one size, step by step."""

import logging
import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from styletransfer.objective import Evaluates, Losses
from styletransfer.objective.inputs import Protection
from styletransfer.optimize.optimizers import LBFGS, Adam, Preconditioner
from styletransfer.settings import OptimizerConfig
from styletransfer.system import interruptible

logger = logging.getLogger(__name__)

# Weight of the penalty, RANGE_WEIGHT / 2 * excess^2, on a pixel value outside of [0, 1].
RANGE_WEIGHT = 10.0
# Mean change of a pixel value in L-BFGS's first step, along the plain gradient: one grey level.
FIRST_STEP = 1 / 255
# Number of steps from one check of the loss to the next. A check waits for the device.
STEPS_BETWEEN_CHECKS = 10
# Attributes of a `Descent` with plain values, which `state_dict` holds beside tensors.
COUNTS = ("step", "problem", "has_settled", "looked_at")
NOT_FINITE = (
    "the loss is not finite; lower optimizer.learning_rate or the weights, or choose "
    "precision=float32"
)


class BestPicture:
    """`BestPicture` keeps the best picture so far at one size, without waiting for the device.

    The first best picture is `start` (1, 3, H, W), in [0, 1]. `averaging` is the decay per step of
    the running mean of pictures; 0 keeps no mean.
    """

    def __init__(self, start: Tensor, averaging: float) -> None:
        self.image, self.averaging = start, averaging
        self.losses: Losses | None = None  # at `image`; None until `remember` is called
        self.mean: Tensor | None = None  # the running mean (1, 3, H, W)

    def remember(self, losses: Losses, picture: Tensor, step: int) -> None:
        """Keep `picture` if its loss is lower, and add it to the mean; `step` counts from 0."""
        if self.losses is None:
            self.losses = losses
        better = losses.total < self.losses.total
        self.image = torch.where(better, picture, self.image)
        self.losses = Losses(
            {k: torch.where(better, v, self.losses.terms[k]) for k, v in losses.terms.items()}
        )
        if self.averaging > 0:
            # In the first steps this is the mean of all pictures, so that the start fades soon.
            decay = min(self.averaging, step / (step + 1))
            mean = picture if self.mean is None else torch.lerp(picture, self.mean, decay)
            self.mean = mean

    def picture(self) -> Tensor:
        """Return the running mean, or else the best picture (1, 3, H, W), in [0, 1]."""
        # A picture that is not finite makes the mean not finite.
        if self.mean is None or not self.mean.isfinite().all():
            return self.image
        return self.mean

    def state_dict(self) -> dict[str, Any]:
        """Return the state: tensors, which are not copied, and None."""
        return {"image": self.image, "losses": self.losses and self.losses.terms, "mean": self.mean}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a `state_dict`, on the same device."""
        self.image, self.mean = state["image"], state["mean"]
        self.losses = state["losses"] and Losses(state["losses"])


class Descent:
    """A descent optimises one picture at one scale, a level of the coarse-to-fine run.

    The optimiser moves a point without bounds. The picture is the point clamped to [0, 1], with the
    content image at protected pixels. The minimised function is objective(picture) plus a penalty
    on values outside [0, 1]. It is a function of the point alone, and only the optimiser changes
    the point. The optimiser's parameter is the shift (1, 3, H, W) from the start to the point, for
    L-BFGS in the coordinates of `Preconditioner`.
    """

    def __init__(
        self,
        objective: Evaluates,
        start: Tensor,
        config: OptimizerConfig,
        protection: Protection | None = None,
    ) -> None:
        self.objective, self.config, self.protection = objective, config, protection
        self.preconditioner: Preconditioner | None = None
        if config.name == "lbfgs" and config.preconditioner > 0:
            self.preconditioner = Preconditioner(start, config.preconditioner)
        self.start = start.detach()
        # `LBFGS` needs a contiguous leaf.
        shift = torch.zeros_like(self.start, memory_format=torch.contiguous_format)
        self.shift = shift.requires_grad_()
        self.optimizer = self._make_optimizer()
        self.best = BestPicture(self._hold(self.start.clamp(0, 1)), config.averaging)
        self.step = 0  # number of steps made
        self.problem: str | None = None  # why the descent gave up, in one line
        self.has_settled = False
        self.looked_at = math.inf

    def run(self, steps: int) -> Iterator[tuple[Losses, Tensor]]:
        """Make steps until `steps` are made; yield the losses and the picture before each step.

        L-BFGS makes fewer steps if the loss reaches a plateau. At every yield the step is complete,
        so `state_dict` may be called there.
        """
        while not self.is_over(steps):
            losses, picture = self.evaluate()
            self.optimizer.step()
            self.shift.grad = None  # the next evaluation makes a new gradient
            self.best.remember(losses, picture, self.step)
            self.step += 1
            if self.step == steps or self.step % STEPS_BETWEEN_CHECKS == 1:
                self._look(losses, steps)
            yield losses, picture
            del picture  # frees its memory before the next evaluation

    def is_over(self, steps: int) -> bool:
        """Tell whether `steps` are made, the loss has settled, or the descent gave up."""
        return self.step >= steps or self.has_settled or self.problem is not None

    def finish(self) -> tuple[Tensor, Losses]:
        """Return the running mean of pictures, or else the best picture, and its losses."""
        if self.best.mean is not None:
            return self.best.mean, self._losses_at(self.best.mean.clone().requires_grad_())
        losses, picture = self.evaluate()
        self.shift.grad = None
        self.best.remember(losses, picture, step=0)
        assert self.best.losses is not None
        return self.best.image, self.best.losses

    def momentum(self) -> dict[str, Tensor] | None:
        """Return Adam's moments for the next scale; None for L-BFGS, which restarts there."""
        return self.optimizer.moments if isinstance(self.optimizer, Adam) else None

    def warm_start(self, momentum: dict[str, Tensor] | None) -> None:
        """Begin with Adam's moments of the scale before; `momentum` does not change."""
        if momentum is not None and isinstance(self.optimizer, Adam):
            self.optimizer.go_on_with(momentum)

    def point(self) -> Tensor:
        """Return the optimiser's point (1, 3, H, W), not clamped."""
        return self.start + self._precondition(self.shift.detach())

    def evaluate(self) -> tuple[Losses, Tensor]:
        """Set the shift's gradient; return the losses and the picture (1, 3, H, W), detached."""
        point: Tensor | None = self.point()
        assert point is not None
        clamped = point.clamp(0, 1)
        if self.preconditioner is None:
            point = None  # saves memory; computed again below
        image = self._hold(clamped).requires_grad_()
        losses = self._losses_at(image)
        assert image.grad is not None
        excess = (self.point() if point is None else point).sub_(clamped.detach())
        # The gradient is multiplied by the number of values: Adam adds 1e-8 to its denominator.
        gradient = image.grad.mul_(image.numel()).masked_fill_(excess != 0, 0)
        if self.protection is not None:
            gradient = gradient.mul_(1 - self.protection.protected)
        gradient = gradient.add_(excess, alpha=RANGE_WEIGHT)
        self.shift.grad = self._precondition(gradient)
        return losses, image.detach()

    def state_dict(self) -> dict[str, Any]:
        """Return the state: plain values, and tensors, not copied, that later steps change.

        Call it only between steps. A state kept in memory needs `copy.deepcopy`.
        """
        return {
            "shift": self.shift.detach(),
            "optimizer": self.optimizer.state_dict(),
            "best": self.best.state_dict(),
            **{key: getattr(self, key) for key in COUNTS},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from the `state` of an equal descent; the tensors of `state` are reused."""
        with torch.no_grad():
            self.shift.copy_(state["shift"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.best.load_state_dict(state["best"])
        for key in COUNTS:
            setattr(self, key, state[key])

    def _make_optimizer(self) -> LBFGS | Adam:
        """Return a new optimiser; its `step` moves the shift by `shift.grad`."""
        rate = self.config.learning_rate
        if self.config.name == "adam":
            return Adam(self.shift, rate)
        return LBFGS(self.shift, history=self.config.history, rate=rate, first=FIRST_STEP)

    def _hold(self, image: Tensor) -> Tensor:
        return image if self.protection is None else self.protection.hold(image)

    def _precondition(self, shift: Tensor) -> Tensor:
        return shift if self.preconditioner is None else self.preconditioner.apply(shift)

    def _losses_at(self, image: Tensor) -> Losses:
        # An evaluation may take minutes, so signals may stop it; nothing changes before its end.
        with interruptible():
            return self.objective.evaluate(image)

    def _look(self, losses: Losses, steps: int) -> None:
        """End the descent if the loss is not finite, or has settled."""
        if not bool(torch.isfinite(losses.total) & torch.isfinite(self.shift).all()):
            self.problem = NOT_FINITE
        elif self._is_on_a_plateau(losses):
            logger.info("the loss has settled after %d of %d steps", self.step, steps)
            self.has_settled = True

    def _is_on_a_plateau(self, losses: Losses) -> bool:
        """Tell whether the best loss has hardly fallen since the last check, and is near `losses`.

        After too long a step, the loss is far above the best, and may need ten steps to fall back.
        """
        if self.config.name != "lbfgs" or self.config.plateau == 0:
            return False
        assert self.best.losses is not None
        now, best, before = float(losses.total), float(self.best.losses.total), self.looked_at
        self.looked_at = best
        share = self.config.plateau
        return best > (1 - share) * before and now < (1 + share) * best
