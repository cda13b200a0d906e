"""Ends the steps of a scale early: if its loss has settled, or a loss or pixel is not finite."""

import logging
import math
from typing import Any

import torch
from torch import Tensor

from styletransfer.objective import Losses
from styletransfer.optimize.best import BestPicture
from styletransfer.system.checkpoint import check_like

logger = logging.getLogger(__name__)

# Number of steps from one check of the loss to the next. A check waits for the device.
STEPS_BETWEEN_CHECKS = 10
NOT_FINITE = (
    "the loss is not finite; lower optimizer.learning_rate or the weights, or choose "
    "precision=float32"
)


class Ending:
    """An ending watches the losses of one scale, and says when its steps are to end.

    Args:
        steps: the number of steps that the scale makes at most.
        plateau: a fraction. The loss has settled if the best loss falls by less than this fraction
            from one check to the next, and the current loss is near the best. With 0 the loss never
            settles.
    """

    def __init__(self, steps: int, plateau: float) -> None:
        self.steps, self.plateau = steps, plateau
        self.problem: str | None = None  # why the scale gave up, in one line; None if it did not
        self.has_settled = False
        self.looked_at = math.inf  # best loss at the last check

    def is_due(self, step: int) -> bool:
        """Tell whether a check is due after `step` steps: after 1, 11, 21 ... and the last."""
        return step == self.steps or step % STEPS_BETWEEN_CHECKS == 1

    def is_reached(self, step: int) -> bool:
        """Tell whether all steps are made, the loss has settled, or the scale gave up."""
        return step >= self.steps or self.has_settled or self.problem is not None

    def look(self, losses: Losses, shift: Tensor, best: BestPicture, step: int) -> None:
        """Set `problem` if the loss or `shift` is not finite; set `has_settled` on a plateau.

        `losses` are the losses of step `step`; `shift` is the canvas's parameter after this step.
        """
        if not bool(torch.isfinite(losses.total) & torch.isfinite(shift).all()):
            self.problem = NOT_FINITE
        elif self._is_on_a_plateau(losses, best):
            logger.info("the loss has settled after %d of %d steps", step, self.steps)
            self.has_settled = True

    def state_dict(self) -> dict[str, Any]:
        """Return the state, which holds plain values and no tensors."""
        return {key: getattr(self, key) for key in ("problem", "has_settled", "looked_at")}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from what `state_dict` returned; raise ValueError if it has another form."""
        own = {"has_settled": False, "looked_at": math.inf}
        check_like(state, own | {"problem": None}, own | {"problem": ""})
        self.problem, self.has_settled = state["problem"], state["has_settled"]
        self.looked_at = state["looked_at"]

    def _is_on_a_plateau(self, losses: Losses, found: BestPicture) -> bool:
        """Tell whether the best loss hardly fell since the last check, and `losses` are near it.

        If the current loss is far above the best one, this is no plateau: after a step that was too
        long, the loss may need ten steps to fall again.
        """
        if self.plateau == 0:
            return False
        assert found.losses is not None
        now, best, before = float(losses.total), float(found.losses.total), self.looked_at
        self.looked_at = best
        return best > (1 - self.plateau) * before and now < (1 + self.plateau) * best
