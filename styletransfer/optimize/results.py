"""What a run yields at every step, the best of a scale, and what it returns in the end."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.objective.criterion import Losses

# A picture (1, 3, H, W) to the same as it is to be shown.
Finish = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Iterate:
    """One evaluated picture, as callbacks receive it."""

    step: int  #: 1 to `steps`, counted over all scales
    steps: int  #: the number planned
    scale: int  #: 1 to `scales`
    scales: int  #: levels of the pyramid
    losses: Losses  #: at `image`; reading them waits for the device
    image: Tensor  #: (1, 3, H, W), sRGB in [0, 1], detached; valid until the next iterate
    finish: Finish = lambda image: image  #: makes `picture` of `image`

    @property
    def picture(self) -> Tensor:
        """What was evaluated in the colours that are asked for, (1, 3, H, W), made when read."""
        return self.finish(self.image)


Callback = Callable[[Iterate], None]


@dataclass(frozen=True)
class Outcome:
    """What a run has made."""

    image: Tensor  #: what was optimised (1, 3, H, W), sRGB in [0, 1], float32, on the CPU
    #: Name -> weighted loss of that very picture, with "total"; empty before the run's end.
    losses: dict[str, float]
    steps: int  #: optimiser steps made
    interrupted: bool = False  #: Ctrl-C or another signal ended it early
    problem: str | None = None  #: one line saying why it gave up
    finish: Finish = lambda image: image  #: makes `picture` of `image`

    @property
    def is_whole(self) -> bool:
        """Whether all steps were made: it was not interrupted and had no problem."""
        return not self.interrupted and self.problem is None

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


class BestPicture:
    """Keeps the best picture so far without waiting for the device.

    Until one has been seen that is the start (1, 3, H, W), in [0, 1]. `averaging` is the decay per
    step of the running mean of pictures; 0 keeps none.
    """

    def __init__(self, start: Tensor, averaging: float) -> None:
        self.image, self.averaging = start, averaging
        self.losses: Losses | None = None  # at the image; None until one has been seen
        self.mean: Tensor | None = None  # the running mean (1, 3, H, W)

    def remember(self, losses: Losses, picture: Tensor, step: int) -> None:
        """Take in the picture that step number `step`, from 0, began with."""
        if self.losses is None:
            self.losses = losses
        better = losses.total < self.losses.total
        # After a start that was not finite, anything finite is better.
        better |= losses.total.isfinite() & ~self.losses.total.isfinite()
        self.image = torch.where(better, picture, self.image)
        self.losses = Losses(
            {k: torch.where(better, v, self.losses.terms[k]) for k, v in losses.terms.items()}
        )
        if self.averaging > 0:
            # The first steps weigh as in a plain mean, so that the start fades soon.
            decay = min(self.averaging, step / (step + 1))
            mean = picture if self.mean is None else torch.lerp(picture, self.mean, decay)
            self.mean = mean

    def picture(self) -> Tensor:
        """Return what the scale would hand over now (1, 3, H, W), in [0, 1]."""
        # An iterate that is not finite spoils the mean until the next check finds out.
        if self.mean is None or not self.mean.isfinite().all():
            return self.image
        return self.mean

    def state_dict(self) -> dict[str, Any]:
        """Return all that goes on from here: live tensors and None."""
        return {"image": self.image, "losses": self.losses and self.losses.terms, "mean": self.mean}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a `state_dict`, on the device of this picture."""
        device, terms, mean = self.image.device, state["losses"], state["mean"]
        self.image = state["image"].to(device)
        self.mean = None if mean is None else mean.to(device)
        self.losses = None if terms is None else Losses({k: terms[k].to(device) for k in terms})
