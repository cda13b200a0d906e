"""The value of an objective: its weighted losses by name, and those that no network sees."""

from dataclasses import dataclass
from functools import reduce
from typing import Protocol

import torch
from torch import Tensor

from styletransfer.losses import temporal_loss, total_variation
from styletransfer.objective.inputs import Anchor


@dataclass(frozen=True)
class Losses:
    """The weighted losses of one evaluation, detached and 0-d, still on their device."""

    # Name -> weighted loss; "content/relu4_2", "style/relu1_1", "total_variation", "temporal".
    terms: dict[str, Tensor]

    @property
    def total(self) -> Tensor:
        """The objective's value."""
        return torch.stack(list(self.terms.values())).sum()

    def as_floats(self) -> dict[str, float]:
        """Return name -> value, with "total"; waits for the device."""
        values = torch.stack(list(self.terms.values())).tolist()
        return {"total": sum(values), **dict(zip(self.terms, values, strict=True))}


class Evaluates(Protocol):
    """Whatever has losses at a picture: an `Objective`, whole or in tiles."""

    def evaluate(self, image: Tensor) -> Losses:
        """Return the losses at `image`, and add d(total)/d(image) to `image.grad`."""
        ...


def gradient_at(objective: Evaluates, image: Tensor) -> Tensor:
    """Return d(total)/d(image) at `image` (1, 3, H, W), sRGB in [0, 1], which stays as it is."""
    leaf = image.detach().requires_grad_()
    objective.evaluate(leaf)
    assert leaf.grad is not None
    return leaf.grad


@dataclass(frozen=True)
class Prior:
    """The losses on the picture itself: its smoothness, and its past."""

    tv_weight: float  # linear weight of the total variation
    anchor: Anchor | None  # what a film's frame is held to, None for nothing

    def losses(self, image: Tensor) -> dict[str, Tensor]:
        """Return the weighted losses at `image` (1, 3, H, W) by name, 0-d, with their graph."""
        losses = {}
        if self.tv_weight > 0:
            losses["total_variation"] = self.tv_weight * total_variation(image)
        if (anchor := self.anchor) is not None and anchor.weight > 0:
            losses["temporal"] = anchor.weight * temporal_loss(image, anchor.target, anchor.weights)
        return losses


def total(losses: dict[str, Tensor]) -> Tensor | None:
    """Return the sum of losses, None of no loss."""
    return reduce(torch.add, losses.values()) if losses else None
