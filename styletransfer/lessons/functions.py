"""Small autograd Functions as examples, each with a plain function; some also have a module."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function

from styletransfer.losses.moments import is_channels_last
from styletransfer.system.precision import without_autocast
from styletransfer.system.validation import check_alike, check_floating


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
        """Save the output: it is positive where x is, and the next layer often saves it as well."""
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        """Set the gradient to 0 where x <= 0; a product with a mask would turn infinity to NaN."""
        (grad_output,) = grads
        (output,) = ctx.saved_tensors
        return grad_output.masked_fill(output <= 0, 0)


def relu(x: Tensor) -> Tensor:
    """Return max(x, 0), for x of any shape and memory format (TypeError: not floating point)."""
    check_floating("relu", x=x)
    result: Tensor = ReLUFunction.apply(x)
    return result


class ReLU(nn.Module):
    """`relu` as a module, without state."""

    def forward(self, x: Tensor) -> Tensor:
        """Return max(x, 0), shaped like x."""
        return relu(x)


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
        """Return dL/dx and dL/dw, each None if it is not needed."""
        (grad_output,) = grads
        x, weight = ctx.saved_tensors
        needs_x, needs_weight = ctx.needs_input_grad
        grad_x = grad_output * weight if needs_x else None
        grad_weight = (grad_output * x).sum_to_size(weight.shape) if needs_weight else None
        return grad_x, grad_weight


def scale(x: Tensor, weight: Tensor) -> Tensor:
    """Return x * weight, shaped like x, to whose shape the weight broadcasts.

    Args:
        x: floating point, any shape and memory format, empty batches included.
        weight: same dtype and device, of a shape that broadcasts to x.shape, such as (N,) for
            x of shape (..., N), or (C, 1, 1) for images.

    Raises:
        TypeError: a tensor is not floating point, or the dtypes differ.
        ValueError: the devices differ, or weight does not broadcast to the shape of x.
    """
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


class Linear(nn.Linear):
    """`linear` with the weight and the bias of `torch.nn.Linear`, drawn from +-1 / sqrt(inputs)."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        if in_features < 1 or out_features < 1:
            raise ValueError(f"Linear needs at least 1 in and out, not {in_features, out_features}")
        super().__init__(in_features, out_features, bias)

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., in_features) to (..., out_features)."""
        return linear(x, self.weight, self.bias)


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
        """Save the indices and the shape of x; backward does not need x itself."""
        (x,) = inputs
        _, indices = output
        # Integer indices have no derivative, so autograd passes no gradient for them to backward.
        ctx.mark_non_differentiable(indices)
        ctx.save_for_backward(indices)
        ctx.shape = x.shape
        ctx.channels_last = is_channels_last(x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        """Put each gradient at the position of its maximum, in the memory format of x."""
        grad_values, _ = grads
        (indices,) = ctx.saved_tensors
        axis = 1 if ctx.channels_last else 2  # the axis of the flattened positions
        shape = list(ctx.shape[:2])
        shape.insert(axis, math.prod(ctx.shape[2:]))
        winners = indices.unsqueeze(axis), grad_values.unsqueeze(axis)
        grad = grad_values.new_zeros(shape).scatter(axis, *winners)
        return (grad.mT if ctx.channels_last else grad).view(ctx.shape)


def global_max_pool(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the maximum (N, C) of each channel over all its positions, and its index (N, C).

    Among equal maxima the first in row-major order wins and receives the whole gradient;
    `torch.amax` would share it. Only the maxima are differentiable. The indices, int64, are
    positions in the flattened trailing axes.

    Args:
        x: (N, C, ...), floating point, one axis of positions or more; N may be 0.

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
