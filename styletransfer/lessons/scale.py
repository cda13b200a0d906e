"""An elementwise product of an input and a learnable weight."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function

from styletransfer.functions.validation import check_alike, check_floating


class ScaleFunction(Function):
    """x * w: dL/dx = g * w, and dL/dw = g * x summed over the axes along which w was repeated.

    `grad_output` g is dL/d(x * w), the chain rule's product of everything downstream; `backward`
    multiplies it by the local derivative, once for each input of `forward`, in their order.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, weight: Tensor) -> Tensor:
        """Return x * weight, the weight broadcast to the shape of x."""
        return x * weight

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        """Each input is the other one's derivative: save both."""
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """Return dL/dx and dL/dw, None where none is due."""
        (grad_output,) = grads
        x, weight = ctx.saved_tensors
        grad_x = grad_weight = None
        if ctx.needs_input_grad[0]:
            grad_x = grad_output * weight
        if ctx.needs_input_grad[1]:
            grad_weight = (grad_output * x).sum_to_size(weight.shape)
        return grad_x, grad_weight


def scale(x: Tensor, weight: Tensor) -> Tensor:
    """Multiply x by a weight that broadcasts to its shape.

    Args:
        x: floating point, any shape and memory format, empty batches included.
        weight: same dtype and device, of a shape that broadcasts to x.shape, such as (N,) for
            x of shape (..., N), or (C, 1, 1) for images.

    Returns:
        x * weight, shaped like x.

    Raises:
        TypeError: a tensor is not floating point, or the dtypes differ.
        ValueError: the devices differ, or weight does not broadcast to the shape of x.
    """
    check_floating("scale", x=x, weight=weight)
    check_alike("scale", x=x, weight=weight)
    trailing = zip(reversed(x.shape), reversed(weight.shape), strict=False)
    if weight.dim() > x.dim() or any(given not in (1, size) for size, given in trailing):
        raise ValueError(
            f"scale: weight of shape {tuple(weight.shape)} does not broadcast to x of shape "
            f"{tuple(x.shape)}"
        )
    result: Tensor = ScaleFunction.apply(x, weight)
    return result


class Scale(nn.Module):
    """`scale` with a learnable weight of the given shape, which starts at 1."""

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(shape))

    def forward(self, x: Tensor) -> Tensor:
        """Return x * weight, shaped like x."""
        return scale(x, self.weight)
