"""What a run yields at every step, and what it returns in the end."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.objective.terms import Losses

# A picture (1, 3, H, W) to the same as it is to be shown.
Finish = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Iterate:
    """One evaluated picture, as callbacks receive it."""

    step: int  # 1 to `steps`, counted over all scales
    steps: int  # the number planned
    scale: int  # 1 to `scales`
    scales: int  # levels of the pyramid
    losses: Losses  # at `image`; reading them waits for the device
    image: Tensor  # (1, 3, H, W), sRGB in [0, 1], detached; valid until the next iterate
    finish: Finish = lambda image: image  # makes `picture` of `image`

    @property
    def picture(self) -> Tensor:
        """What was evaluated in the colours that are asked for, (1, 3, H, W), made when read."""
        return self.finish(self.image)


Callback = Callable[[Iterate], None]


@dataclass(frozen=True)
class Outcome:
    """What a run has made."""

    image: Tensor  # what was optimised (1, 3, H, W), sRGB in [0, 1], float32, on the CPU
    # Name -> weighted loss of that very picture, with "total"; empty before the run's end.
    losses: dict[str, float]
    steps: int  # optimiser steps made
    interrupted: bool = False  # Ctrl-C or another signal ended it early
    problem: str | None = None  # one line saying why it gave up
    finish: Finish = lambda image: image  # makes `picture` of `image`

    @property
    def picture(self) -> Tensor:
        """The pastiche: `image` in the colours that are asked for, made when read."""
        return self.finish(self.image)

    def finished(self, run: str) -> Self:
        """Return this result; raise what ended `run`, as messages call it, before its end."""
        if self.interrupted:
            raise KeyboardInterrupt
        if self.problem is not None:
            raise UserError(f"{run}: {self.problem}")
        return self
