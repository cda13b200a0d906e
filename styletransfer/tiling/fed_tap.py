"""A Function that returns features unchanged; its backward adds a loss's gradient to theirs."""

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.autograd import Function

# (features F, gradient of F from later layers) -> that gradient plus dL/dF, for an external loss L;
# a new tensor of the shape of F. The arguments must not be changed.
Feed = Callable[[Tensor, Tensor], Tensor]


class FedTap(Function):
    """This Function is the identity in forward; backward adds dL/dF of a loss L computed elsewhere.

    A tile holds only a part of the features on which L depends, so its graph cannot compute L.
    dL/dF is computed during backward: if the gradients of all layers were stored before, they would
    take a quarter of the tile's memory.
    """

    @staticmethod
    def forward(features: Tensor, feed: Feed) -> Tensor:
        """Return the features, a view."""
        return features.view_as(features)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Feed], output: Tensor) -> None:
        """Save the features, which the network keeps in memory anyway."""
        features, ctx.feed = inputs
        ctx.save_for_backward(features)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        """Return the gradient from later layers plus dL/dF."""
        (features,) = ctx.saved_tensors
        return ctx.feed(features, grads[0]), None
