"""An evaluation: the weighted losses of one picture by name, and the gradient of their sum."""

from dataclasses import dataclass
from functools import reduce
from typing import Protocol

import torch
from torch import Tensor

from styletransfer.losses import temporal_loss, total_variation
from styletransfer.objective.inputs import Anchor


@dataclass(frozen=True)
class Losses:
    """`Losses` are the weighted losses of one evaluation: detached 0-d tensors on the device."""

    #: Name -> weighted loss; names such as "content/relu4_2", "match/relu3_1", "total_variation".
    terms: dict[str, Tensor]

    @property
    def total(self) -> Tensor:
        """The objective's value: the sum of all weighted losses, 0-d."""
        return torch.stack(list(self.terms.values())).sum()

    def as_floats(self) -> dict[str, float]:
        """Return name -> loss, and "total" -> their sum, as floats; this waits for the device."""
        values = torch.stack(list(self.terms.values())).tolist()
        return {"total": sum(values), **dict(zip(self.terms, values, strict=True))}


class Evaluates(Protocol):
    """`Objective`, `CapturedObjective` and `TiledObjective` follow this protocol."""

    def evaluate(self, image: Tensor) -> Losses:
        """Return the losses at `image`, and add d(total)/d(image) to `image.grad`.

        `image` is (1, 3, H, W), sRGB in [0, 1], a leaf that requires grad.
        """


def gradient_at(objective: Evaluates, image: Tensor) -> Tensor:
    """Return d(total)/d(image) at `image` (1, 3, H, W), sRGB in [0, 1]; `image` is unchanged."""
    leaf = image.detach().requires_grad_()
    objective.evaluate(leaf)
    assert leaf.grad is not None
    return leaf.grad


def prior_losses(tv_weight: float, anchor: Anchor | None, image: Tensor) -> dict[str, Tensor]:
    """Return name -> weighted loss of the pixels of `image` (1, 3, H, W), 0-d, differentiable.

    They are the total variation, with the weight `tv_weight`, and the `temporal_loss` of the
    anchor, if there is one. A loss of weight 0 is left out.
    """
    losses = {}
    if tv_weight > 0:
        losses["total_variation"] = tv_weight * total_variation(image)
    if anchor is not None and anchor.weight > 0:
        losses[anchor.name] = anchor.weight * temporal_loss(image, anchor.target, anchor.weights)
    return losses


def total(losses: dict[str, Tensor]) -> Tensor | None:
    """Return the sum of the losses, or None if `losses` is empty."""
    return reduce(torch.add, losses.values()) if losses else None
