"""The losses on the picture itself, which no network sees: its smoothness, and its past."""

from functools import reduce

import torch
from torch import Tensor

from styletransfer.config import ObjectiveConfig
from styletransfer.losses import temporal_loss, total_variation
from styletransfer.objective.inputs import Inputs


class Prior:
    """The weighted losses on the picture itself.

    Args:
        config: the weight of the total variation.
        pictures: with or without an anchor.
    """

    def __init__(self, config: ObjectiveConfig, pictures: Inputs) -> None:
        self.tv_weight, self.anchor = config.tv_weight, pictures.anchor

    def losses(self, image: Tensor) -> dict[str, Tensor]:
        """Return the losses at `image` (1, 3, H, W) by name, 0-d, with their graph."""
        found = {}
        if self.tv_weight > 0:
            found["total_variation"] = self.tv_weight * total_variation(image)
        if (anchor := self.anchor) is not None and anchor.weight > 0:
            found["temporal"] = anchor.weight * temporal_loss(image, anchor.target, anchor.weights)
        return found


def total(losses: dict[str, Tensor]) -> Tensor | None:
    """Return the sum of losses, None of no loss."""
    return reduce(torch.add, losses.values()) if losses else None
