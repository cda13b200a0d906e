"""Padding by one position from the opposite side, so that a convolution sees a torus."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from styletransfer.system.validation import check_features


class WrapPad(Function):
    """pad(x, (1, 1, 1, 1), mode="circular"), which in torch forgets that x is channels_last."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        """Put the last row before the first one and so on, then the columns."""
        for dim in (2, 3):
            x = torch.cat([x.narrow(dim, -1, 1), x, x.narrow(dim, 0, 1)], dim)
        return x

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        """Save nothing: copying is linear."""

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        """Add what the copies receive to what they are copies of."""
        (grad,) = grads
        for dim in (3, 2):
            before, own, after = torch.split(grad, [1, grad.shape[dim] - 2, 1], dim)
            grad = own.clone()
            grad.narrow(dim, 0, 1).add_(after)
            grad.narrow(dim, -1, 1).add_(before)
        return grad


def wrap_pad(x: Tensor) -> Tensor:
    """Return x (1, C, H, W) with one position more on each side, (1, C, H + 2, W + 2).

    (TypeError, ValueError: see `check_features`.)
    """
    check_features("wrap_pad", x)
    padded: Tensor = WrapPad.apply(x)
    return padded
