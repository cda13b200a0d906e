"""The result of a step, the best picture at one size, and the result of a run."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.objective import Losses

# Picture (1, 3, H, W) -> the same picture in the colours that the setting `color` asks for.
Finish = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Iterate:
    """An iterate is one evaluated picture, as callbacks receive it."""

    step: int  #: number of this step, 1 to `steps`, counted over all scales
    steps: int  #: planned number of steps
    scale: int  #: number of this scale, 1 to `scales`
    scales: int  #: number of picture sizes, coarse to fine
    losses: Losses  #: losses of `image`; reading them waits for the device
    image: Tensor  #: (1, 3, H, W), sRGB in [0, 1], detached; valid until the next iterate
    finish: Finish = lambda image: image  #: function that returns `picture` for `image`

    @property
    def picture(self) -> Tensor:
        """`image` in the colours of `config.color`, (1, 3, H, W), made when read."""
        return self.finish(self.image)


Callback = Callable[[Iterate], None]


@dataclass(frozen=True)
class Outcome:
    """An outcome is the result of a run."""

    image: Tensor  #: the optimised picture (1, 3, H, W), sRGB in [0, 1], float32, on the CPU
    #: Name -> weighted loss of `image`, with "total"; empty before the run's end.
    losses: dict[str, float]
    steps: int  #: number of optimiser steps made
    interrupted: bool = False  #: Ctrl-C or another signal ended the run early
    problem: str | None = None  #: why the run gave up, in one line
    finish: Finish = lambda image: image  #: function that returns `picture` for `image`

    @property
    def is_whole(self) -> bool:
        """Whether all steps were made: the run was not interrupted and had no problem."""
        return not self.interrupted and self.problem is None

    @property
    def picture(self) -> Tensor:
        """The pastiche: `image` in the colours of `config.color`, made when read."""
        return self.finish(self.image)

    def finished(self, run: str) -> Self:
        """Return this result, or if the run ended early, raise KeyboardInterrupt or a UserError."""
        if self.interrupted:
            raise KeyboardInterrupt
        if self.problem is not None:
            raise UserError(f"{run}: {self.problem}")
        return self


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
        # A finite loss is better than a loss that is not finite.
        better |= losses.total.isfinite() & ~self.losses.total.isfinite()
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
        """Continue from a `state_dict`, on the device of `image`."""
        device, terms, mean = self.image.device, state["losses"], state["mean"]
        self.image = state["image"].to(device)
        self.mean = None if mean is None else mean.to(device)
        self.losses = None if terms is None else Losses({k: terms[k].to(device) for k in terms})
