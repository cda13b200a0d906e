"""The best picture so far at one scale, and the running mean of the scale's pictures."""

from typing import Any

import torch
from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.objective import Losses
from styletransfer.system.checkpoint import check_like


class BestPicture:
    """`BestPicture` keeps the best picture so far at one size, without waiting for the device.

    The first best picture is `start` (1, 3, H, W), in [0, 1]. A step multiplies the running mean by
    `averaging` and adds 1 - `averaging` times the new picture. If `averaging` is 0, there is no
    running mean.
    """

    def __init__(self, start: Tensor, averaging: float) -> None:
        self.image, self.averaging = start, averaging
        self.losses: Losses | None = None  # losses of `image`; None until `remember` is called
        self.mean: Tensor | None = None  # the running mean (1, 3, H, W)

    def remember(self, losses: Losses, picture: Tensor, step: int) -> None:
        """Keep `picture` if its loss is the lowest; add it to the mean; `step` counts from 0."""
        if self.losses is None:
            self.losses = losses
        if losses.terms.keys() != self.losses.terms.keys():  # another job's checkpoint was loaded
            raise UserError("the checkpoint holds other losses than the run's; start afresh")
        better = losses.total < self.losses.total
        self.image = torch.where(better, picture, self.image)
        self.losses = Losses(
            {k: torch.where(better, v, self.losses.terms[k]) for k, v in losses.terms.items()}
        )
        if self.averaging > 0:
            # The mean of the first pictures has equal weights: with the decay `averaging` in all
            # steps, the first picture would have a large weight.
            decay = min(self.averaging, step / (step + 1))
            mean = picture if self.mean is None else torch.lerp(picture, self.mean, decay)
            self.mean = mean

    def picture(self) -> Tensor:
        """Return the mean if it exists and is finite, else the best picture, (1, 3, H, W)."""
        # A single picture with an infinite or nan value would spoil the running mean for good.
        if self.mean is None or not self.mean.isfinite().all():
            return self.image
        return self.mean

    def state_dict(self) -> dict[str, Any]:
        """Return the state: tensors, which are not copied, or None for those that do not exist."""
        return {"image": self.image, "losses": self.losses and self.losses.terms, "mean": self.mean}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from what `state_dict` returned; its tensors are on the device of the pictures.

        Raises LookupError, TypeError, AttributeError or ValueError if `state` has another form.
        """
        terms = state["losses"]
        if terms is not None:
            if not all(value.is_floating_point() for value in terms.values()):
                raise ValueError("losses that are no real numbers")
            if not terms:
                raise ValueError("no losses")
            check_like(terms, {k: torch.zeros((), dtype=v.dtype) for k, v in terms.items()})
        check_like(state["image"], self.image)
        check_like(state["mean"], None, self.image)
        self.image, self.mean = state["image"], state["mean"]
        self.losses = None if terms is None else Losses(terms)
