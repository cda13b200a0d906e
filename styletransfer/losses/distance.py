"""The base classes of the losses: the distance of features from a constant target."""

from types import EllipsisType
from typing import Self

from torch import Tensor, nn

from styletransfer.features.tensors import accumulate_dtype


def mean_square(difference: Tensor) -> Tensor:
    """Return mean(difference^2), 0-d, summed in float32 for bfloat16, else in its own dtype."""
    return difference.to(accumulate_dtype(difference.dtype)).square().mean()


class Distance(nn.Module):
    """A distance is a loss L of features F (1, C, H, W), for a constant target.

    `content.py`, `match.py` and `style.py` define one distance each. Calling a distance computes L
    by torch's operations, which autograd differentiates. `tap` returns the same L, with a gradient
    that is written by hand. The loss mode decides which of the two is used.

    Args:
        target: the tensor with which the features, or a statistic of them, are compared. It is
            detached and becomes a buffer of the module.
    """

    target: Tensor

    def __init__(self, target: Tensor) -> None:
        super().__init__()
        self.register_buffer("target", target.detach())

    def forward(self, features: Tensor) -> Tensor:
        """Return L, a 0-d tensor, float32 for bfloat16 features; below 0 only by rounding."""
        raise NotImplementedError

    def scaled(self, features: Tensor, weight: float) -> Tensor:
        """Return weight^2 * L; a subclass whose L is a square multiplies inside the square."""
        return weight**2 * self.forward(features)

    def tap(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return the features unchanged (a view), and L; a Function gives the gradients of both."""
        raise NotImplementedError


class PositionalDistance(Distance):
    """A distance that is a mean over positions; its target (1, C, H, W) has a vector for each."""

    def at(self, window: tuple[EllipsisType, slice, slice]) -> Self:
        """Return a distance for the positions in `window`; its buffers are views of this one's."""
        part = type(self).__new__(type(self))
        nn.Module.__init__(part)
        for name, buffer in self.named_buffers():
            part.register_buffer(name, buffer[window])
        return part
