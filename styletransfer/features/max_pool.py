"""Maximum pooling over 2 x 2 windows that saves no indices for the backward pass."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function

from styletransfer.system.validation import check_floating

WINDOW = [2, 2]
PADDING, DILATION, CEIL = [0, 0], [1, 1], False


class MaxPoolFunction(Function):
    """This Function takes the maximum of each 2 x 2 window; its first position gets the gradient.

    torch saves an 8-byte index for every maximum: in bfloat16, a quarter of the memory that VGG-19
    saves for backward. The ReLU before the pool saves x in any case, so backward computes the
    indices again from x.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        """Return the maximum of each window; an odd last row or column is dropped."""
        height, width = x.shape[2] // 2 * 2, x.shape[3] // 2 * 2
        top, bottom = x[..., 0:height:2, :width], x[..., 1:height:2, :width]
        # Comparing columns before rows reads each pixel from memory only once.
        upper = torch.maximum(top[..., 0::2], top[..., 1::2])
        lower = torch.maximum(bottom[..., 0::2], bottom[..., 1::2])
        return torch.maximum(upper, lower)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        """Save x, the input."""
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        """Compute the indices by torch's pooling, and scatter the gradient by torch's backward."""
        (grad_output,) = grads
        (x,) = ctx.saved_tensors
        aten = torch.ops.aten
        _, positions = aten.max_pool2d_with_indices(x.detach(), WINDOW)
        grad: Tensor = aten.max_pool2d_with_indices_backward(
            grad_output, x, WINDOW, WINDOW, PADDING, DILATION, CEIL, positions
        )
        return grad


def max_pool(x: Tensor) -> Tensor:
    """Take the maximum of each window of 2 x 2 positions; equal to `torch.max_pool2d(x, 2)`.

    Args:
        x: (N, C, H, W), floating point, any memory format; H and W at least 2.

    Returns:
        (N, C, H // 2, W // 2).

    Raises:
        TypeError: x is not floating point.
        ValueError: x is not (N, C, H, W), or no window fits.
    """
    check_floating("max_pool", x=x)
    if x.dim() != 4 or min(x.shape[2:]) < 2:
        raise ValueError(
            "max_pool: x must have shape (N, C, H, W) with H and W at least 2, "
            f"not {tuple(x.shape)}"
        )
    result: Tensor = MaxPoolFunction.apply(x)
    return result


class MaxPool(nn.Module):
    """This module applies `max_pool`; it has no state."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the maxima (N, C, H // 2, W // 2) of x (N, C, H, W)."""
        return max_pool(x)
