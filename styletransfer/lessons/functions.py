"""Two autograd Functions as examples, each with a plain function: relu and linear."""

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from styletransfer.system.precision import without_autocast
from styletransfer.system.validation import check_alike, check_floating


class ReLUFunction(Function):
    """max(x, 0): the gradient passes where x > 0 and stops elsewhere.

    At exactly 0, any value from 0 to 1 is a subgradient; torch and this Function use 0.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        """Return max(x, 0); NaN stays NaN."""
        return x.clamp(min=0)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        """Save the output, which is positive where x is; the next layer often saves it as well."""
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        """Return g where x > 0, else 0; a product with a mask would turn infinity into NaN."""
        (grad_output,) = grads
        (output,) = ctx.saved_tensors
        return grad_output.masked_fill(output <= 0, 0)


def relu(x: Tensor) -> Tensor:
    """Return max(x, 0), for x of any shape and memory format (TypeError: not floating point)."""
    check_floating("relu", x=x)
    result: Tensor = ReLUFunction.apply(x)
    return result


class LinearFunction(Function):
    """y = x W^T + b. With g = dL/dy: dL/dx = g W, dL/dW = g^T x, dL/db = sum of g over all rows."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Return x W^T + b, (..., outputs), for x (..., inputs)."""
        rows = _as_rows(x)
        with without_autocast(x):
            product = rows @ weight.mT if bias is None else torch.addmm(bias, rows, weight.mT)
        return product.view(*x.shape[:-1], weight.shape[0])

    @staticmethod
    def setup_context(
        ctx: Any, inputs: tuple[Tensor, Tensor, Tensor | None], output: Tensor
    ) -> None:
        """Save only what the needed gradients use; a frozen weight then does not save x."""
        x, weight, _ = inputs
        needs_x, needs_weight, _ = ctx.needs_input_grad
        ctx.save_for_backward(x if needs_weight else None, weight if needs_x else None)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """Return dL/dx, dL/dW and dL/db, each None if it is not needed."""
        (grad_output,) = grads
        x, weight = ctx.saved_tensors
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad
        rows = _as_rows(grad_output)
        grad_x = grad_output @ weight if needs_x else None
        grad_weight = rows.mT @ _as_rows(x) if needs_weight else None
        grad_bias = rows.sum(0) if needs_bias else None
        return grad_x, grad_weight, grad_bias


def _as_rows(x: Tensor) -> Tensor:
    """Return x (..., N) as (rows, N): one row if x has one axis, no row if the batch is empty."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return x W^T + b, (..., outputs).

    Args:
        x: (..., inputs), floating point, at least one axis, empty batches included.
        weight: W, (outputs, inputs), of the same dtype and device.
        bias: b, (outputs,), of the same dtype and device, or None.

    Raises:
        TypeError: a tensor is not floating point, or the dtypes differ.
        ValueError: devices differ or shapes do not fit together.
    """
    check_alike("linear", x=x, weight=weight, bias=bias)
    if weight.dim() != 2 or x.dim() < 1 or x.shape[-1] != weight.shape[1]:
        raise ValueError(
            f"linear: x of shape {tuple(x.shape)} and weight of shape {tuple(weight.shape)} do "
            "not fit: they must be (..., inputs) and (outputs, inputs)"
        )
    if bias is not None and tuple(bias.shape) != (weight.shape[0],):
        raise ValueError(
            f"linear: weight of shape {tuple(weight.shape)} needs a bias of shape "
            f"({weight.shape[0]},), not {tuple(bias.shape)}"
        )
    result: Tensor = LinearFunction.apply(x, weight, bias)
    return result
