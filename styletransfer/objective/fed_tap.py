"""The fed tap: features pass through, and a gradient known beforehand joins on the way back."""

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.autograd import Function

# (features, gradient that reached the tap) -> that gradient plus dL/dfeatures.
Feed = Callable[[Tensor, Tensor], Tensor]


class FedTap(Function):
    """The identity forward; backward adds dL/dF of a loss that was computed elsewhere.

    A tile sees only a part of the features on which a loss depends, so no output of its graph is
    that loss. The gradient is made when backward arrives, not before: the gradients of all taps,
    held from the start, would cost a quarter of the tile's memory.
    """

    @staticmethod
    def forward(features: Tensor, feed: Feed) -> Tensor:
        """Return the features, a view."""
        return features.view_as(features)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Feed], output: Tensor) -> None:
        """Save F, which the network holds anyway."""
        features, ctx.feed = inputs
        ctx.save_for_backward(features)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        """Return the gradient from above joined by the fed one."""
        (features,) = ctx.saved_tensors
        return ctx.feed(features, grads[0]), None


def fed_tap(features: Tensor, feed: Feed) -> Tensor:
    """Pass features F (1, C, H, W) on; backward makes feed(F, gradient) of their gradient.

    That must return a new tensor of the shape of F, and leave its arguments as they are.
    """
    result: Tensor = FedTap.apply(features, feed)
    return result
