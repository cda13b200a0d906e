"""The optimisation of one picture at one scale: what the optimiser moves, and what is kept."""

import logging
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Protocol

import torch
from torch import Tensor

from styletransfer.config import OptimizerConfig
from styletransfer.errors import UserError
from styletransfer.objective.terms import Losses
from styletransfer.optimize.preconditioner import Preconditioner
from styletransfer.system.memory import is_out_of_memory

logger = logging.getLogger(__name__)

# A pixel outside [0, 1] is drawn back by RANGE_WEIGHT / 2 * excess^2, in the scaled loss below.
RANGE_WEIGHT = 10.0
# Mean change of a pixel in L-BFGS's first step, which follows the bare gradient: one grey level.
FIRST_STEP = 1 / 255
# Losses are looked at this often, because a look waits for the device.
STEPS_BETWEEN_CHECKS = 10
# Fresh starts from the best picture after a loss that is not finite.
RESTARTS = 3
ADVICE = "lower optimizer.learning_rate or the weights, or choose precision=float32"
# Adam's decay rates: the usual first, a faster second, for a gradient that changes with the scale.
ADAM_BETAS = (0.9, 0.99)


class Evaluates(Protocol):
    """Whatever has losses at a picture: an `Objective`, whole or in tiles."""

    def evaluate(self, image: Tensor) -> Losses:
        """Return the losses at `image`, and add d(total)/d(image) to `image.grad`."""
        ...


class Descent:
    """The optimisation of one picture at one scale.

    The optimiser moves a point without bounds; the picture is that point clamped to [0, 1]. What
    is minimised is objective(clamp(point)) plus a small pull back to the range, a plain function
    of the point, so that nothing ever moves behind the optimiser's back. The optimiser's own leaf
    is the shift from the start to the point, for L-BFGS in the coordinates of `Preconditioner`.

    Args:
        objective: what to minimise.
        start: (1, 3, H, W), where to begin.
        config: the optimiser and its settings.
    """

    def __init__(
        self,
        objective: Evaluates,
        start: Tensor,
        config: OptimizerConfig,
    ) -> None:
        self.objective, self.config = objective, config
        self.preconditioner: Preconditioner | None = None
        if config.name == "lbfgs" and config.preconditioner > 0:
            self.preconditioner = Preconditioner(start, config.preconditioner)
        self.start = start.detach()
        # Contiguous: torch's L-BFGS flattens gradients with view(-1).
        self.shift = torch.zeros_like(self.start, memory_format=torch.contiguous_format)
        self.shift.requires_grad_()
        self.optimizer = make_optimizer(self.shift, config)
        self.best = self.start.clamp(0, 1)
        self.best_losses: Losses | None = None
        self.mean: Tensor | None = None
        self.restarts = 0
        self.problem: str | None = None
        self._seen: tuple[Losses, Tensor] | None = None
        self._looked_at = math.inf

    def run(self, steps: int) -> Iterator[tuple[Losses, Tensor]]:
        """Make `steps` steps; yield the losses and the picture (1, 3, H, W) each one began with.

        L-BFGS makes fewer where the loss has reached a plateau.
        """
        for step in range(steps):
            if not self._step():
                continue
            self.optimizer.param_groups[0]["lr"] = self.config.learning_rate
            losses, picture = self._remember(step)
            yield losses, picture
            last = step == steps - 1
            if last or step % STEPS_BETWEEN_CHECKS == 0:
                if not self._is_finite(losses):
                    self._restart()
                elif self._has_settled(losses):
                    logger.info("the loss has settled after %d of %d steps", step + 1, steps)
                    return
            if self.problem is not None:
                return

    def finish(self) -> tuple[Tensor, Losses]:
        """Evaluate where the last step led; return the resulting picture and its losses."""
        if self.mean is not None:
            return self.mean, self.objective.evaluate(self.mean.clone().requires_grad_())
        self._closure()
        self._remember(step=0)
        assert self.best_losses is not None
        return self.best, self.best_losses

    def best_picture(self) -> Tensor:
        """Return the best picture so far (1, 3, H, W), in [0, 1]."""
        # An iterate that is not finite spoils the mean until the next check finds out.
        if self.mean is None or not self.mean.isfinite().all():
            return self.best
        return self.mean

    def momentum(self) -> dict[str, Any] | None:
        """Return Adam's moments, to be carried to the next scale; L-BFGS starts afresh there."""
        if self.config.name != "adam":
            return None
        return dict(self.optimizer.state[self.shift]) or None  # none right after a restart

    def warm_start(self, momentum: dict[str, Any] | None) -> None:
        """Resize the moments of the scale before and go on with them."""
        if momentum is None:
            return
        size = (self.shift.shape[2], self.shift.shape[3])
        state = {"step": momentum["step"]}
        for key in ("exp_avg", "exp_avg_sq"):
            state[key] = torch.nn.functional.interpolate(momentum[key], size, mode="bilinear")
        self.optimizer.state[self.shift] = state

    def point(self) -> Tensor:
        """Return where the optimiser is, (1, 3, H, W), not clamped."""
        shift = self.shift.detach()
        return self.start + self._precondition(shift)

    def _closure(self) -> Tensor:
        point = self.point()
        image = point.clamp(0, 1).requires_grad_()
        losses = self.objective.evaluate(image)
        assert image.grad is not None
        excess = point - image.detach()
        # Times the number of pixels: torch's L-BFGS drops curvatures below an absolute 1e-10, and
        # Adam adds an absolute 1e-8 to its denominator.
        count = image.numel()
        gradient = image.grad.mul_(count).masked_fill_(excess != 0, 0)
        gradient = gradient.add_(excess, alpha=RANGE_WEIGHT)
        self.shift.grad = self._precondition(gradient)
        self._seen = losses, image.detach()
        return losses.total * count + RANGE_WEIGHT / 2 * excess.square().sum()

    def _precondition(self, shift: Tensor) -> Tensor:
        return shift if self.preconditioner is None else self.preconditioner.apply(shift)

    def _remember(self, step: int) -> tuple[Losses, Tensor]:
        """Keep the best picture and the running mean without waiting for the device."""
        assert self._seen is not None
        losses, picture = self._seen
        if self.best_losses is None:
            self.best_losses = losses
        better = losses.total < self.best_losses.total
        # After a start that was not finite, anything finite is better.
        better |= losses.total.isfinite() & ~self.best_losses.total.isfinite()
        self.best = torch.where(better, picture, self.best)
        self.best_losses = Losses(
            {k: torch.where(better, v, self.best_losses.terms[k]) for k, v in losses.terms.items()}
        )
        if self.config.averaging > 0:
            # The first steps weigh as in a plain mean, so that the start fades soon.
            decay = min(self.config.averaging, step / (step + 1))
            self.mean = picture if self.mean is None else torch.lerp(picture, self.mean, decay)
        return losses, picture

    def _step(self) -> bool:
        """Make one step; where memory runs out, begin again with half the history: return False.

        The objective has tried to do with less by then.
        """
        try:
            self.optimizer.step(self._closure)  # type: ignore[arg-type]
            return True
        except (MemoryError, RuntimeError) as error:
            kept = len(self.optimizer.state[self.shift].get("old_dirs", []))
            if not is_out_of_memory(error) or kept < 2:
                raise
        logger.warning("memory ran out; going on with an L-BFGS history of %d", kept // 2)
        self.config = replace(self.config, history=kept // 2)
        self._begin_again()
        return False

    def _is_finite(self, losses: Losses) -> bool:
        return bool(torch.isfinite(losses.total) & torch.isfinite(self.shift).all())

    def _has_settled(self, losses: Losses) -> bool:
        """Tell whether the best loss has hardly fallen since the last look, and is where we are.

        After a step that went too far the loss may take ten steps to find back.
        """
        if self.config.name != "lbfgs" or self.config.plateau == 0:
            return False
        assert self.best_losses is not None
        now, best, before = float(losses.total), float(self.best_losses.total), self._looked_at
        self._looked_at = best
        share = self.config.plateau
        return best > (1 - share) * before and now < (1 + share) * best

    def _restart(self) -> None:
        if self.restarts == 0:
            logger.warning("the loss is no longer finite; going on from the best picture so far")
        if self.restarts == RESTARTS:
            self.problem = f"the loss was not finite {RESTARTS + 1} times; {ADVICE}"
        self.restarts += 1
        self._begin_again()

    def _begin_again(self) -> None:
        """Forget all but the best picture."""
        self.start, self.mean, self._looked_at = self.best, None, math.inf
        with torch.no_grad():
            self.shift.zero_()
        self.optimizer = make_optimizer(self.shift, self.config)


def make_optimizer(shift: Tensor, config: OptimizerConfig) -> torch.optim.Optimizer:
    """Return torch's optimiser for one picture; each of its steps makes one evaluation.

    Raises:
        UserError: an unknown optimiser, or settings out of range.
    """
    if config.name == "adam":
        return torch.optim.Adam([shift], lr=config.learning_rate, betas=ADAM_BETAS, fused=True)
    if config.name == "lbfgs":
        # Tolerances of 0: torch's are absolute, and gradients of small weights would meet them.
        # The rate is that of the first step alone, whose L1 length torch makes lr: its own choice,
        # 1 for the whole picture, is so short that rounding fills the first curvature pair.
        return torch.optim.LBFGS(
            [shift],
            lr=FIRST_STEP * shift.numel(),
            max_iter=1,
            history_size=config.history,
            tolerance_grad=0.0,
            tolerance_change=0.0,
        )
    raise UserError(f"unknown optimizer {config.name!r}; choose lbfgs or adam")
