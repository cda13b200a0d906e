"""The affine map x W^T + b."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function

from styletransfer.functions.precision import without_autocast
from styletransfer.functions.validation import check_alike, check_floating


class LinearFunction(Function):
    """y = x W^T + b: dL/dx = g W, dL/dW = g^T x, dL/db = the sum of g over all rows."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Return x W^T + b, with every leading axis of x kept."""
        rows = _as_rows(x)
        with without_autocast(x):
            product = rows @ weight.mT if bias is None else torch.addmm(bias, rows, weight.mT)
        return product.view(*x.shape[:-1], weight.shape[0])

    @staticmethod
    def setup_context(
        ctx: Any, inputs: tuple[Tensor, Tensor, Tensor | None], output: Tensor
    ) -> None:
        """Save only what a due gradient asks for: a frozen weight then keeps no input alive."""
        x, weight, _ = inputs
        needs_x, needs_weight, _ = ctx.needs_input_grad
        ctx.save_for_backward(x if needs_weight else None, weight if needs_x else None)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """Return dL/dx, dL/dW and dL/db, None where none is due."""
        (grad_output,) = grads
        x, weight = ctx.saved_tensors
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad
        rows = _as_rows(grad_output)
        grad_x = grad_output @ weight if needs_x else None
        grad_weight = rows.mT @ _as_rows(x) if needs_weight else None
        grad_bias = rows.sum(0) if needs_bias else None
        return grad_x, grad_weight, grad_bias


def _as_rows(x: Tensor) -> Tensor:
    """(..., N) as (rows, N): one row if x has a single axis, none if the batch is empty."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute x W^T + b.

    Args:
        x: (..., inputs), floating point, at least one axis, empty batches included.
        weight: W, (outputs, inputs), of the same dtype and device.
        bias: b, (outputs,), of the same dtype and device, or None.

    Returns:
        (..., outputs).

    Raises:
        TypeError: a tensor is not floating point, or the dtypes differ.
        ValueError: devices differ or shapes do not fit together.
    """
    check_floating("linear", x=x, weight=weight, bias=bias)
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


class Linear(nn.Linear):
    """`linear` with the weight and the bias of `torch.nn.Linear`, drawn from +-1 / sqrt(inputs)."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        if in_features < 1 or out_features < 1:
            raise ValueError(f"Linear needs at least 1 in and out, not {in_features, out_features}")
        super().__init__(in_features, out_features, bias)

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., in_features) to (..., out_features)."""
        return linear(x, self.weight, self.bias)
