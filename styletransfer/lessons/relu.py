"""The rectified linear unit, max(x, 0), with its gradient written out."""

from typing import Any

from torch import Tensor, nn
from torch.autograd import Function

from styletransfer.functions.validation import check_floating


class ReLUFunction(Function):
    """max(x, 0): the gradient passes where x > 0 and stops elsewhere.

    At exactly 0 any value from 0 to 1 is a subgradient; torch takes 0, and so do we.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        """Clamp at zero; NaN stays NaN."""
        return x.clamp(min=0)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        """Save the output: it has the same mask as the input, and the next layer keeps it too."""
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        """Mask by filling, not by multiplying: infinity times 0 would be NaN."""
        (grad_output,) = grads
        (output,) = ctx.saved_tensors
        return grad_output.masked_fill(output <= 0, 0)


def relu(x: Tensor) -> Tensor:
    """Compute max(x, 0) elementwise, for x of any shape, memory format and floating dtype.

    Raises:
        TypeError: x is not floating point.
    """
    check_floating("relu", x=x)
    result: Tensor = ReLUFunction.apply(x)
    return result


class ReLU(nn.Module):
    """`relu` as a module, without state."""

    def forward(self, x: Tensor) -> Tensor:
        """Return max(x, 0), shaped like x."""
        return relu(x)
