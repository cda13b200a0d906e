"""An `Iterate` is what a run yields after each step; an `Outcome` is the result of the run."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.objective import Losses
from styletransfer.pictures.convert import png, to_image

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
        """`image` in the colours that `color` asks for, (1, 3, H, W), computed when it is read."""
        return self.finish(self.image)

    def _repr_png_(self) -> bytes:
        return png(to_image(self.picture))


@dataclass(frozen=True)
class Outcome:
    """An outcome is the result of a run."""

    image: Tensor  #: the optimised picture (1, 3, H, W), sRGB in [0, 1], float32, on the CPU
    picture: Tensor  #: the pastiche: `image` in the colours that the setting `color` asks for
    #: Name -> weighted loss of `image`, with "total"; empty until the run has made all its steps.
    losses: dict[str, float]
    steps: int  #: number of optimiser steps made
    #: Whether CUDA graphs evaluated the picture, at one scale or more; see the setting `captured`.
    captured: bool = False
    problem: str | None = None  #: why the run gave up, in one line; None if it did not

    def finished(self, run: str) -> Self:
        """Return this outcome; if the run gave up, raise UserError with the name `run` and why."""
        if self.problem is not None:
            raise UserError(f"{run}: {self.problem}")
        return self
