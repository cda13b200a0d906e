"""Circular padding by one position: each side is padded with the opposite side."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function

from styletransfer.features.tensors import check_features


class WrapPad(Function):
    """This Function pads circularly by 1. Unlike torch's `pad`, it keeps channels_last format."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        """Copy the last row above the first, and the first below the last; likewise the columns."""
        for dim in (2, 3):
            x = torch.cat([x.narrow(dim, -1, 1), x, x.narrow(dim, 0, 1)], dim)
        return x

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        """Save nothing: padding is linear, so its gradient does not depend on x."""

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        """Add the gradient of each padding position to that of the position that was copied."""
        (grad,) = grads
        for dim in (3, 2):
            before, own, after = torch.split(grad, [1, grad.shape[dim] - 2, 1], dim)
            grad = own.clone()
            grad.narrow(dim, 0, 1).add_(after)
            grad.narrow(dim, -1, 1).add_(before)
        return grad


def wrap_pad(x: Tensor) -> Tensor:
    """Return x (1, C, H, W), padded circularly by one position per side: (1, C, H + 2, W + 2).

    Raises ValueError if x is not (1, C, H, W).
    """
    check_features("wrap_pad", x)
    padded: Tensor = WrapPad.apply(x)
    return padded


class Wrapped(nn.Module):
    """This layer is the 3 x 3 convolution `conv` with circular padding instead of its own."""

    def __init__(self, conv: nn.Conv2d) -> None:
        super().__init__()
        self.conv = conv

    def forward(self, x: Tensor) -> Tensor:
        """Return (1, out_channels, H, W) for x (1, in_channels, H, W)."""
        return torch.conv2d(wrap_pad(x), self.conv.weight, self.conv.bias)
