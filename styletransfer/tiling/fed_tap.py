"""A Function that returns its input unchanged, and adds the gradient of a loss in backward."""

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.autograd import Function

# A function that gets features F and the gradient of F that later layers give. It returns this
# gradient plus dL/dF, for a loss L, as a new tensor, and must not change its arguments.
Feed = Callable[[Tensor, Tensor], Tensor]


class FedTap(Function):
    """This Function is the identity in forward; backward adds dL/dF, which `feed` computes.

    A tile holds only a part of the features F on which a loss L depends, so its graph has no L.
    dL/dF is computed during backward: if the gradients of all layers were stored before, they would
    take a quarter of the tile's memory.
    """

    @staticmethod
    def forward(features: Tensor, feed: Feed) -> Tensor:
        """Return a view of the features."""
        return features.view_as(features)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Feed], output: Tensor) -> None:
        """Save the features, which the network keeps in memory in any case."""
        features, ctx.feed = inputs
        ctx.save_for_backward(features)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        """Return the gradient from later layers plus dL/dF."""
        (features,) = ctx.saved_tensors
        return ctx.feed(features, grads[0]), None
