"""3 x 3 convolutions with a quarter of the multiplications, for kernels that do not change.

Winograd's minimal filtering F(4 x 4, 3 x 3), as Lavin and Gray 2016 (arXiv:1509.09308, section 4)
apply it to neural networks: 6 x 6 pixels d and a kernel g give 4 x 4 results

    A^T [(G g G^T) * (B^T d B)] A

with 36 products (*), where a direct convolution needs 144. Each of the 36 products, summed over the
input channels, is a matrix product. All 36 together are computed as a 1 x 1 convolution in 36
groups: oneDNN's convolutions are fast on every x86 processor, while MKL's batched matrix products
took twice as long on an AMD processor. The cost of the transforms grows with the number of
channels, and the cost of the products grows with the square of this number. So the gain is largest
in layers with many channels.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function

from styletransfer.features.tensors import check_features

# The matrices B^T, G and A^T of the paper (equation 15), for the interpolation points 0, 1, -1, 2,
# -2 and infinity.
PIXELS = (
    (4, 0, -5, 0, 1, 0),
    (0, -4, -4, 1, 1, 0),
    (0, 4, -4, -1, 1, 0),
    (0, -2, -1, 2, 1, 0),
    (0, 2, -1, -2, 1, 0),
    (0, 4, 0, -5, 0, 1),
)
KERNELS = (
    (1 / 4, 0, 0),
    (-1 / 6, -1 / 6, -1 / 6),
    (-1 / 6, 1 / 6, -1 / 6),
    (1 / 24, 1 / 12, 1 / 6),
    (1 / 24, -1 / 12, 1 / 6),
    (0, 0, 1),
)
RESULTS = (
    (1, 1, 1, 1, 1, 0),
    (0, 1, -1, 2, -2, 0),
    (0, 1, 1, 4, 4, 0),
    (0, 1, -1, 8, -8, 1),
)
# A tile has STEP results along each axis and reads READ pixels along each axis.
STEP, READ = 4, 6
# Index of the interpolation point 1. Column ONE of RESULTS is all ones, so a bias that is added to
# the product at row ONE, column ONE of a tile's 6 x 6 products is added to each result of the tile.
ONE = 1
# Number of tiles that are computed at once. With fewer, oneDNN would rearrange the kernels more
# often; all tiles at once would need nearly seven times the memory of x.
TILES = 256
# Smallest number of positions (H * W) at which the algorithm is faster than a direct convolution.
POSITIONS = 24 * 24


class WinogradConv(Function):
    """This Function is conv2d(x, g, bias, padding=1); `kernels` is g, transformed, and constant.

    The gradient of a convolution is a convolution with mirrored kernels, and with input and output
    channels exchanged. `is_mirrored` gives this second convolution. It mirrors the kernels by
    reading the pixels and writing the results in reverse order.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, kernels: Tensor, bias: Tensor | None, is_mirrored: bool) -> Tensor:
        """Return (1, K, H, W), computed in strips of rows, about TILES tiles each."""
        to_products = torch.tensor(PIXELS, dtype=x.dtype, device=x.device)
        to_results = torch.tensor(RESULTS, dtype=x.dtype, device=x.device)
        weight = kernels.flatten(0, 2)[..., None, None]
        multiply: Callable[..., Tensor] = torch.conv2d
        if is_mirrored:
            to_products, to_results = to_products.flip(1), to_results.flip(0)
            multiply = torch.conv_transpose2d
        # The Kronecker products transform both axes of a tile in one matrix product.
        to_products = torch.kron(to_products, to_products)
        to_results = torch.kron(to_results, to_results)
        height, width = x.shape[2:]
        rows = max(1, TILES // _tiles(width)) * STEP
        strips = []
        for top in range(0, height, rows):
            count = min(rows, height - top)
            pixels = _padded(x, top, count)
            columns = to_products @ _patches(pixels)
            products = _flat(multiply(_channels(columns), weight, groups=READ**2))
            if bias is not None:
                products[:, ONE * READ + ONE] += bias
            results = to_results @ products
            down, across = pixels.shape[0] // STEP, pixels.shape[1] // STEP
            results = results.view(down, across, STEP, STEP, -1).transpose(1, 2)
            strip = results.reshape(STEP * down, STEP * across, -1)
            strips.append(strip[None, :count, :width].permute(0, 3, 1, 2))
        # torch.cat returns a new tensor, not a view, so the next layer may change it in place.
        return torch.cat(strips, dim=2)

    @staticmethod
    def setup_context(
        ctx: Any, inputs: tuple[Tensor, Tensor, Tensor | None, bool], output: Tensor
    ) -> None:
        """Save the kernels alone: the gradient does not depend on x."""
        _, kernels, _, ctx.is_mirrored = inputs
        ctx.save_for_backward(kernels)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        """Convolve the gradient by this same Function, so that it can be differentiated again."""
        (kernels,) = ctx.saved_tensors
        grad = WinogradConv.apply(grads[0], kernels, None, not ctx.is_mirrored)
        return grad, None, None, None


def _padded(x: Tensor, top: int, rows: int) -> Tensor:
    """Return `rows` rows of x from `top`, as (h, w, C), padded to whole tiles plus 1 per side."""
    height, width = x.shape[2:]
    below = top + _tiles(rows) * STEP + 1 - height
    right = _tiles(width) * STEP + 1 - width
    # A negative padding removes rows: those of other strips that this strip does not read.
    return torch.nn.functional.pad(x, (1, right, 1 - top, below))[0].permute(1, 2, 0)


def _tiles(length: int) -> int:
    """Return how many tiles cover `length` results."""
    return -(-length // STEP)


def _patches(pixels: Tensor) -> Tensor:
    """Return the pixels that each of n = r c tiles reads: (4 r + 2, 4 c + 2, C) -> (n, 36, C)."""
    patches = pixels.unfold(0, READ, STEP).unfold(1, READ, STEP).permute(0, 1, 3, 4, 2)
    return patches.reshape(-1, READ**2, pixels.shape[2])


def _channels(columns: Tensor) -> Tensor:
    """Return (n, 36, C) as an image (1, 36 C, n, 1), channels_last."""
    return columns.reshape(1, columns.shape[0], 1, -1).permute(0, 3, 1, 2)


def _flat(products: Tensor) -> Tensor:
    """Return an image (1, 36 K, n, 1), channels_last, as (n, 36, K)."""
    return products.permute(0, 2, 3, 1).reshape(products.shape[2], READ**2, -1)


def transform_kernels(weight: Tensor) -> Tensor:
    """Return G g G^T for every kernel: (K, C, 3, 3) -> (6, 6, K, C), four times as large."""
    transform = weight.new_tensor(KERNELS)
    return torch.einsum("ia,kcab,jb->ijkc", transform, weight, transform).contiguous()


def winograd_conv(x: Tensor, kernels: Tensor, bias: Tensor | None = None) -> Tensor:
    """Convolve x with constant kernels; equal to `conv2d(x, weight, bias, padding=1)`.

    Args:
        x: (1, C, H, W), floating point, any memory format.
        kernels: (6, 6, K, C), `transform_kernels(weight)`.
        bias: (K,), or None.

    Returns:
        (1, K, H, W), channels_last. In float32 the relative error is about 3e-6; a direct
        convolution has 2e-7 (docs/backward.md gives the error of a whole gradient). In bfloat16
        the relative error is 3 %, which is too much for use.

    Raises:
        ValueError: x is not (1, C, H, W), or kernels or bias require grad. They get no gradient.
    """
    check_features("winograd_conv", x)
    if kernels.requires_grad or (bias is not None and bias.requires_grad):
        raise ValueError("winograd_conv: kernels and bias are constants; detach them")
    result: Tensor = WinogradConv.apply(x, kernels, bias, False)
    return result


class WinogradConv2d(nn.Conv2d):
    """This layer is a 3 x 3 convolution with constant weights, by Winograd's algorithm.

    It shares the weights of `conv`, and stores the transformed kernels, which are four times as
    large.
    """

    kernels: Tensor

    def __init__(self, conv: nn.Conv2d) -> None:
        super().__init__(conv.in_channels, conv.out_channels, 3, padding=1, device="meta")
        self.weight, self.bias = conv.weight, conv.bias
        self.register_buffer("kernels", transform_kernels(conv.weight.detach()), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return (1, out_channels, H, W) for x (1, in_channels, H, W)."""
        if math.prod(x.shape[2:]) < POSITIONS:
            return super().forward(x)
        return winograd_conv(x, self.kernels, self.bias)
