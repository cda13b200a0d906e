"""Removes the lattice of a style network: a faint pattern that repeats every 4 pixels.

The smallest features of a style network have a position for every fourth pixel. So the mean of what
the network paints may depend on row and column modulo 4. In smooth areas this is seen as a lattice.
Here the lattice is estimated around each pixel, as a mean of the fine detail at the pixels that are
4, 8, ... pixels away in rows and columns, and subtracted. Strokes stay, because they do not repeat
every 4 pixels.

As a filter, this stops frequencies near 1/4 and 1/2 cycles per pixel. Detail that is much stronger
than its surroundings has little weight in the mean. Otherwise the filter would repeat an edge every
4 pixels.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, pad, pixel_shuffle, pixel_unshuffle

# Period of the lattice in pixels. A block, a square of PERIOD x PERIOD pixels, is stored as the
# channels of one position: its pixel (y, x) is channel PERIOD y + x.
PERIOD = 4
# Standard deviation and radius, in blocks, of the Gaussian weights of the mean. A smaller deviation
# removes more of a lattice that changes from place to place, but also more of the strokes.
DEVIATION, REACH = 1.5, 4
# Detail that is STANDS_OUT times as strong as the mean around it gets half of the full weight.
STANDS_OUT = 4.0
# Weights of the mean over the five pixels around a pixel, in one dimension. The fine detail of a
# pixel is its difference from the mean. The mean is 0 for a wave of 1/4 or 1/2 cycles per pixel.
AROUND = (0.125, 0.25, 0.25, 0.25, 0.125)
# Added to squares of detail: in a plain picture they are 0, and 0 / 0 would be NaN.
EPSILON = 1e-8


def detail_kernels() -> Tensor:
    """Return kernels (16, 16, 3, 3), which compute the fine detail of blocks."""
    # In one dimension, mean[i, j, b] is the weight of pixel j in the mean around a block's pixel i.
    # Pixel j lies in the block before (b = 0), in the same block (1) or in the block after it (2).
    mean = torch.zeros(PERIOD, PERIOD, 3)
    for pixel in range(PERIOD):
        for place, weight in enumerate(AROUND, start=pixel - len(AROUND) // 2):
            mean[pixel, place % PERIOD, 1 + place // PERIOD] += weight
    kernels = -torch.einsum("aip,bjq->abijpq", mean, mean).reshape(PERIOD**2, PERIOD**2, 3, 3)
    kernels[:, :, 1, 1] += torch.eye(PERIOD**2)
    return kernels


DETAIL = detail_kernels()
GAUSSIAN = torch.exp(-(torch.arange(-REACH, REACH + 1.0) ** 2) / (2 * DEVIATION**2))


class WithoutLattice(nn.Module):
    """This layer removes from x (N, C, H, W) the faint pattern that repeats every PERIOD pixels."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x minus the lattice of each of its C channels; H and W are multiples of PERIOD."""
        colors, blocks = x.shape[1], pixel_unshuffle(x, PERIOD)
        kernels = DETAIL.to(x).repeat(colors, 1, 1, 1)
        detail = conv2d(pad(blocks, (1, 1, 1, 1), mode="replicate"), kernels, groups=colors)
        return pixel_shuffle(blocks - lattice(detail, colors), PERIOD)


def lattice(detail: Tensor, colors: int) -> Tensor:
    """Return the lattice (N, 16 C, h, w) in the fine `detail` of blocks, of the same shape."""
    count, _, height, width = detail.shape
    apart = (count, colors, PERIOD**2, height, width)
    square = detail.reshape(apart).square().mean(1) + EPSILON  # (N, 16, h, w)
    usual = summed(square.sqrt().mean(1, keepdim=True)) / GAUSSIAN.sum().item() ** 2
    weights = 1 / (1 + square / (STANDS_OUT * usual).square())
    total = summed(detail * weights.repeat(1, colors, 1, 1))
    mean = total.reshape(apart) / summed(weights)[:, None]
    return (mean - mean.mean(2, keepdim=True)).flatten(1, 2)


def summed(x: Tensor) -> Tensor:
    """Return for each position the sum of x (N, C, h, w) around it, with Gaussian weights."""
    channels = x.shape[1]
    kernel = GAUSSIAN.to(x).expand(channels, 1, 1, -1)
    across = conv2d(x, kernel, padding=(0, REACH), groups=channels)
    return conv2d(across, kernel.mT, padding=(REACH, 0), groups=channels)
