"""The scale, step and picture that a run has reached, as a state that a checkpoint can keep."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from torch import Tensor

from styletransfer.job import Scale
from styletransfer.optimize.optimizers import moments_like
from styletransfer.system.checkpoint import check_like, natural

# After `Run.steer`, the current scale makes at least FEW more steps, or all its steps if it has
# fewer. With fewer steps the new objective would hardly have an effect.
FEW = 8


@dataclass
class Progress:
    """`Progress` is what a run carries from one scale to the next; a checkpoint saves it."""

    image: Tensor  #: (1, 3, h, w), the result of the previous scale, or the start of the run
    planned: int  #: number of all steps: those made and those still to make
    steps: int = 0  #: number of steps made
    index: int = 0  #: index of the current scale
    spent: int = 0  #: steps of the current scale that were made before `Run.steer` was called
    momentum: dict[str, Tensor] | None = None  #: Adam's moments at the previous scale
    tile: int | None = None  #: side in pixels of the scale's tiles; None for no tiles
    largest_tile: int | None = None  #: upper limit of `tile`; None until memory runs out
    losses: dict[str, float] | None = None  #: losses of the final picture, or None

    def steps_left(self, scale: Scale) -> int:
        """Return how many steps the current scale makes, or still makes after `Run.steer`."""
        return max(scale.steps - self.spent, min(FEW, scale.steps))

    def go_to(self, scales: Sequence[Scale], side: int) -> None:
        """Go to the first of `scales` whose longer side is at least `side` pixels, or the last."""
        sides = [max(scale.size) for scale in scales]
        self.index = next((n for n, own in enumerate(sides) if own >= side), len(sides) - 1)
        self.spent = max(0, self.steps - sum(scale.steps for scale in scales[: self.index]))
        self.planned = self.steps + self.steps_left(scales[self.index])
        self.planned += sum(scale.steps for scale in scales[self.index + 1 :])
        self.losses = None

    def state_dict(self) -> dict[str, Any]:
        """Return the state: plain values, and tensors, which are not copied."""
        return dict(vars(self))

    def load_state_dict(self, state: dict[str, Any], scales: int) -> None:
        """Continue from the `state` of a run with `scales` scales; its tensors are not copied.

        Raises LookupError, TypeError, AttributeError or ValueError if `state` has another form.
        """
        image, losses = state["image"], state["losses"]
        for key, most in {"index": scales, "spent": math.inf, "steps": math.inf}.items():
            natural(state[key], most=most)
        natural(state["planned"])
        height, width = (natural(side, 1) for side in image.shape[2:])
        check_like(image, self.image.new_empty(1, 3, height, width))
        check_like(state["momentum"], None, moments_like(image))
        for tile in (state["tile"], state["largest_tile"]):
            check_like(tile, None, natural(1 if tile is None else tile, least=1))
        is_done = state["index"] == scales  # only a run that is done has losses
        check_like(losses, dict.fromkeys(losses or "?", math.inf) if is_done else None)
        for field in fields(self):
            setattr(self, field.name, state[field.name])
