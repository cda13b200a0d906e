"""Maximum pooling over windows of 2 x 2, which remembers no positions."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function

from styletransfer.system.validation import check_floating

WINDOW = [2, 2]
PADDING, DILATION, CEIL = [0, 0], [1, 1], False


class MaxPoolFunction(Function):
    """The largest of every four neighbours; the first of equal ones receives the gradient.

    torch keeps an 8-byte position for every maximum, a quarter of all that VGG-19 keeps in
    bfloat16. x itself is there anyway, kept by the ReLU before: backward finds the positions again.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        """Compare the four corners of all windows; a row or column left over is dropped."""
        height, width = x.shape[2] // 2 * 2, x.shape[3] // 2 * 2
        top, bottom = x[..., 0:height:2, :width], x[..., 1:height:2, :width]
        # Columns first would read each pixel twice from memory.
        upper = torch.maximum(top[..., 0::2], top[..., 1::2])
        lower = torch.maximum(bottom[..., 0::2], bottom[..., 1::2])
        return torch.maximum(upper, lower)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        """Save x."""
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        """Find the positions as torch does, and scatter by torch's own backward."""
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
        ValueError: x has not four axes, or no window fits.
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
    """`max_pool` as a module, without state."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the maxima (N, C, H // 2, W // 2) of x (N, C, H, W)."""
        return max_pool(x)
