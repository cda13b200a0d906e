"""Convolutions of 3 x 3 with a quarter of the multiplications, where the kernels stay the same.

Winograd's minimal filtering F(4 x 4, 3 x 3), as Lavin and Gray 2016 (arXiv:1509.09308, section 4)
apply it to neural networks: 6 x 6 pixels d and a kernel g give 4 x 4 results

    A^T [(G g G^T) * (B^T d B)] A

whose 36 products (*) would be 144. Summed over the channels, each of the 36 is a matrix product of
its own, and all of them are one convolution of 1 x 1 in 36 groups: oneDNN's convolutions are fast
on every x86 processor, while MKL's batched products took twice as long on an AMD one. Transforms
cost in proportion to the channels, products to their square: the more channels, the better.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from styletransfer.system.precision import without_autocast
from styletransfer.system.validation import check_alike, check_features, check_floating

# Equation 15 of the paper, for the points 0, 1, -1, 2, -2 and infinity.
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
# Results of a tile along an axis, and pixels that it reads.
STEP, READ = 4, 6
# The point 1: its product reaches every result of the tile unchanged.
ONE = 1
# Tiles at a time. Every lot packs the kernels again; all tiles at once would take nearly seven
# times the memory of x.
TILES = 256


class WinogradConv(Function):
    """conv2d(x, g, bias, padding=1) from transformed kernels; they and the bias are constants.

    The gradient of a convolution is one with mirrored kernels and exchanged channels. Mirrored
    kernels are the same kernels seen from the other end: read pixels and write results backwards.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, kernels: Tensor, bias: Tensor | None, is_mirrored: bool) -> Tensor:
        """Go from row to row of tiles, some rows at a time."""
        to_products = torch.tensor(PIXELS, dtype=x.dtype, device=x.device)
        to_results = torch.tensor(RESULTS, dtype=x.dtype, device=x.device)
        weight = kernels.flatten(0, 2)[..., None, None]
        multiply: Callable[..., Tensor] = torch.conv2d
        if is_mirrored:
            to_products, to_results = to_products.flip(1), to_results.flip(0)
            multiply = torch.conv_transpose2d
        # Both axes at once.
        to_products = torch.kron(to_products, to_products)
        to_results = torch.kron(to_results, to_results)
        height, width = x.shape[2:]
        rows = max(1, TILES // _tiles(width)) * STEP
        strips = []
        for top in range(0, height, rows):
            count = min(rows, height - top)
            with without_autocast(x):
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
        # No view, so that the next layer may work in place.
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
        """Convolve the gradient; this can be differentiated again in the same way."""
        (kernels,) = ctx.saved_tensors
        grad = WinogradConv.apply(grads[0], kernels, None, not ctx.is_mirrored)
        return grad, None, None, None


def _padded(x: Tensor, top: int, rows: int) -> Tensor:
    """Return `rows` rows (h, w, C) as tiles read them: whole tiles, one pixel more all around."""
    height, width = x.shape[2:]
    below = top + _tiles(rows) * STEP + 1 - height
    right = _tiles(width) * STEP + 1 - width
    # Negative where rows of other strips are cut off.
    return torch.nn.functional.pad(x, (1, right, 1 - top, below))[0].permute(1, 2, 0)


def _tiles(length: int) -> int:
    """Return how many tiles cover `length` results."""
    return -(-length // STEP)


def _patches(pixels: Tensor) -> Tensor:
    """Return what each of n tiles reads: (4 r + 2, 4 c + 2, C) -> (n, 36, C)."""
    patches = pixels.unfold(0, READ, STEP).unfold(1, READ, STEP).permute(0, 1, 3, 4, 2)
    return patches.reshape(-1, READ**2, pixels.shape[2])


def _channels(columns: Tensor) -> Tensor:
    """Return (n, 36, C) as one picture of 36 C channels, as channels_last has it."""
    return columns.reshape(1, columns.shape[0], 1, -1).permute(0, 3, 1, 2)


def _flat(products: Tensor) -> Tensor:
    """Return such a picture (1, 36 K, n, 1) as (n, 36, K)."""
    return products.permute(0, 2, 3, 1).reshape(products.shape[2], READ**2, -1)


def transform_kernels(weight: Tensor) -> Tensor:
    """Return G g G^T of every kernel: (K, C, 3, 3) -> (6, 6, K, C), four times the numbers."""
    check_floating("transform_kernels", weight=weight)
    if weight.dim() != 4 or tuple(weight.shape[2:]) != (3, 3):
        raise ValueError(
            f"transform_kernels: weight must have shape (K, C, 3, 3), not {tuple(weight.shape)}"
        )
    transform = weight.new_tensor(KERNELS)
    return torch.einsum("ia,kcab,jb->ijkc", transform, weight, transform).contiguous()


def winograd_conv(x: Tensor, kernels: Tensor, bias: Tensor | None = None) -> Tensor:
    """Convolve with kernels that are constants; equal to `conv2d(x, weight, bias, padding=1)`.

    Args:
        x: (1, C, H, W), floating point, any memory format.
        kernels: (6, 6, K, C), `transform_kernels(weight)`.
        bias: (K,), or None.

    Returns:
        (1, K, H, W), channels_last. In float32 it is some 3e-6 of its size off the exact result,
        where a direct convolution is 2e-7 off (what that makes of a whole gradient is another
        matter: see docs/backward.md); bfloat16, with 3 % off, is not for use.

    Raises:
        TypeError: a tensor is not floating point, or the dtypes differ.
        ValueError: shapes that do not belong together, devices that differ, or constants that
            require grad, which would silently stay without one.
    """
    check_features("winograd_conv", x)
    check_alike("winograd_conv", x=x, kernels=kernels, bias=bias)
    if kernels.dim() != 4 or (*kernels.shape[:2], kernels.shape[3]) != (READ, READ, x.shape[1]):
        raise ValueError(
            f"winograd_conv: x {tuple(x.shape)} and kernels {tuple(kernels.shape)} must have "
            "shapes (1, C, H, W) and (6, 6, K, C)"
        )
    if bias is not None and tuple(bias.shape) != (kernels.shape[2],):
        raise ValueError(
            f"winograd_conv: bias must have shape ({kernels.shape[2]},), not {tuple(bias.shape)}"
        )
    if kernels.requires_grad or (bias is not None and bias.requires_grad):
        raise ValueError("winograd_conv: kernels and bias are constants; detach them")
    result: Tensor = WinogradConv.apply(x, kernels, bias, False)
    return result
