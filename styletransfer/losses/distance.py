"""Base classes of losses: a layer that keeps its loss, and a loss with a target per position."""

from types import EllipsisType
from typing import Self

from torch import Tensor, nn


class LossLayer(nn.Module):
    """A loss layer returns its input, and keeps the loss of its last forward in `loss`."""

    loss: Tensor  #: 0-d; `Objective.evaluate` deletes it, so that its graph is freed


class PositionalDistance(LossLayer):
    """A loss of features (1, C, H, W): the mean, over positions, of a distance from a target.

    Args:
        target: (1, C, H, W), a vector for each position. It is detached and becomes a buffer.
    """

    target: Tensor

    def __init__(self, target: Tensor) -> None:
        super().__init__()
        self.register_buffer("target", target.detach())

    def at(self, window: tuple[EllipsisType, slice, slice]) -> Self:
        """Return a loss of the positions in `window`. Its buffers are views of those of `self`."""
        part = type(self).__new__(type(self))
        nn.Module.__init__(part)
        for name, buffer in self.named_buffers():
            part.register_buffer(name, buffer[window])
        return part
