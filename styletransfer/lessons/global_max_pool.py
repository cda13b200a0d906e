"""Global max pooling: the largest value of each channel, and where it was."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from styletransfer.functions.moments import is_channels_last
from styletransfer.functions.validation import check_floating


class GlobalMaxPoolFunction(Function):
    """Two outputs, values and indices; the winning position alone receives the gradient."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the maximum over all axes after the second, and its flat index."""
        # Tensor.max documents that among equal values the first wins, and that NaN wins over all.
        values, indices = x.flatten(2).max(dim=2)
        return values, indices

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: tuple[Tensor, Tensor]) -> None:
        """Save the indices, not x: they and its shape say all that backward asks."""
        (x,) = inputs
        _, indices = output
        # An integer has no derivative: autograd then never hands a gradient for it to backward.
        ctx.mark_non_differentiable(indices)
        ctx.save_for_backward(indices)
        ctx.shape = x.shape
        ctx.channels_last = is_channels_last(x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        """Put each gradient at its winner, in the memory format of x."""
        grad_values, _ = grads
        (indices,) = ctx.saved_tensors
        batch, channels, *size = ctx.shape
        positions = 1 if ctx.channels_last else 2
        shape = [batch, channels]
        shape.insert(positions, torch.Size(size).numel())
        grad = grad_values.new_zeros(shape).scatter(
            positions, indices.unsqueeze(positions), grad_values.unsqueeze(positions)
        )
        image = grad.mT if ctx.channels_last else grad
        return image.view(batch, channels, *size)


def global_max_pool(x: Tensor) -> tuple[Tensor, Tensor]:
    """Take the maximum of each channel over all its positions.

    Among equal maxima the first in row-major order wins and receives the whole gradient;
    `torch.amax` would share it. Only the values are differentiable.

    Args:
        x: (N, C, ...), floating point, one axis of positions or more; N may be 0.

    Returns:
        values (N, C), and indices (N, C), int64: positions in the flattened trailing axes.

    Raises:
        TypeError: x is not floating point.
        ValueError: x has fewer than three axes, or no positions to choose from.
    """
    check_floating("global_max_pool", x=x)
    if x.dim() < 3 or 0 in x.shape[2:]:
        raise ValueError(
            "global_max_pool: x must have shape (N, C, ...) with at least one position after C, "
            f"not {tuple(x.shape)}"
        )
    values, indices = GlobalMaxPoolFunction.apply(x)
    return values, indices
