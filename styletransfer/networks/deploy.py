"""A style network rewritten to paint fast, and in strips: the same function, but for rounding.

What a trained network spends its time on, and what stands there instead:

- A convolution of 3 x 3 behind nearest upsampling sees each small position two or three times, so
  its kernel is added up beforehand: 2 x 2 taps for each of four interleaved outputs, as in a
  sub-pixel convolution (Shi et al. 2016, arXiv:1609.05158). That is 4/9 of the multiplications.
- The last convolution makes three channels, and a vector register holds eight numbers or more.
  Four neighbouring positions at once are twelve: a kernel of 10 x 10 with stride 2 holds the one
  of 9 x 9 four times, shifted.
- Norms of few channels work on neighbouring positions side by side, which fill a register, and
  batch norm's kernel takes their statistics, which is many times as fast as `torch.var_mean`.

A picture that does not fit memory is painted in strips. A norm needs the statistics of a whole
picture, so a segment of the network is run once for each of its norms, to add up what that sees,
and once more for its output. Kept are the features between two segments.
"""

import copy
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, pad, pixel_shuffle

from styletransfer.networks.johnson import (
    STRIDE,
    ConditionalInstanceNorm,
    NormedConv,
    Segment,
    Statistics,
    StyleNetwork,
    padded,
)
from styletransfer.system.precision import accumulate_dtype

# Number of channels that a norm processes together, in float32 values: two registers of AVX-512, or
# four of AVX2, which keeps the vector units busy.
SIDE_BY_SIDE = 32
# The output channels of FourfoldConv are padded to a multiple of BLOCK, the float32 values in an
# AVX2 register. Convolutions handle channels in such blocks, and a partial block costs more.
BLOCK = 8
# MERGED[a][p][k] is 1 if tap k of a 3-tap kernel, behind nearest upsampling by 2, reads position p
# of the two small positions that it covers; a = 0 for odd positions of the result, 1 for even ones.
MERGED = (((1.0, 1.0, 0.0), (0.0, 0.0, 1.0)), ((1.0, 0.0, 0.0), (0.0, 1.0, 1.0)))
# Rows of a segment's input that a strip reads above and below its own rows. It is a multiple of
# STRIDE, and larger than the receptive field's radius (7 rows in the downsampling segment, 2 in a
# residual block and in the upsampling segment).
HALO = 2 * STRIDE


def deployed(network: StyleNetwork, dtype: torch.dtype = torch.float32) -> StyleNetwork:
    """Return a copy that paints fast, whole or `in_strips`, and cannot be trained or saved.

    Its convolutions are in `dtype`; norms keep theirs, which is that of the pictures, and take
    their statistics in float32 at least.
    """
    made = copy.deepcopy(network).requires_grad_(False).eval()
    for layer in [module for module in made.modules() if isinstance(module, NormedConv)]:
        assert isinstance(layer.conv, nn.Conv2d)
        assert isinstance(layer.norm, ConditionalInstanceNorm)
        if layer.upsample:
            layer.conv = UpsampledConv(layer.conv, dtype)
        else:
            layer.conv.to(dtype).register_forward_pre_hook(lambda _, given: given[0].to(dtype))
        layer.norm = SideBySideNorm(layer.norm)
        layer.upsample = False
    decoder: Any = made.segments[-1]
    conv, bound = decoder.last
    decoder.last = nn.Sequential(FourfoldConv(conv, dtype), bound)
    return made.to(memory_format=torch.channels_last)


class UpsampledConv(nn.Module):
    """Nearest upsampling and a reflected convolution of 3 x 3, in one convolution of 2 x 2."""

    kernels: Tensor

    def __init__(self, conv: nn.Conv2d, dtype: torch.dtype) -> None:
        super().__init__()
        merged = conv.weight.new_tensor(MERGED)
        kernels = torch.einsum("apk,bql,ockl->oabcpq", merged, merged, conv.weight).flatten(0, 2)
        self.register_buffer("kernels", kernels.to(dtype))

    def forward(self, x: Tensor) -> Tensor:
        """Return (N, out, 2H, 2W) for x (N, in, H, W)."""
        # Reflection padding after upsampling equals replicate padding before it.
        around = pad(x, (1, 1, 1, 1), mode="replicate")
        shifted = pixel_shuffle(conv2d(around, self.kernels), 2)
        return shifted[:, :, 1:-1, 1:-1].contiguous(memory_format=torch.channels_last)


class FourfoldConv(nn.Module):
    """A reflected convolution that makes 2 x 2 positions at once; its result has its old dtype."""

    kernels: Tensor
    bias: Tensor

    def __init__(self, conv: nn.Conv2d, dtype: torch.dtype) -> None:
        super().__init__()
        self.out, self.around = conv.out_channels, conv.kernel_size[0] // 2
        self.result = conv.weight.dtype
        shifted = [pad(conv.weight, (b, 1 - b, a, 1 - a)) for a in range(2) for b in range(2)]
        kernels = torch.stack(shifted, dim=1).flatten(0, 1)
        assert conv.bias is not None  # the last convolution has a bias, as no norm follows it
        empty = -len(kernels) % BLOCK
        self.register_buffer("kernels", pad(kernels, (0, 0) * 3 + (0, empty)).to(dtype))
        self.register_buffer("bias", pad(conv.bias.repeat_interleave(4), (0, empty)).to(dtype))

    def forward(self, x: Tensor) -> Tensor:
        """Return (N, out, H, W) for x (N, in, H, W) of even height and width."""
        around = pad(x, (self.around,) * 4, mode="reflect")
        fourfold = conv2d(around, self.kernels, self.bias, stride=2)
        return pixel_shuffle(fourfold[:, : 4 * self.out].to(self.result), 2)


class SideBySideNorm(nn.Module):
    """The norm of a layer, on neighbouring positions side by side."""

    def __init__(self, norm: ConditionalInstanceNorm) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, x: Tensor, blend: Tensor, statistics: Statistics | None = None) -> Tensor:
        """Return what `ConditionalInstanceNorm` does, in the dtype of x."""
        count = neighbours(x)
        factor, offset = (
            torch.cat([value.to(x.dtype)] * count, 1)
            for value in self.norm.affine(blend, statistics or measured(x))
        )
        wide = torch.addcmul(offset, with_channels(x, factor.shape[1]), factor)
        return with_channels(wide, x.shape[1])


def measured(x: Tensor) -> Statistics:
    """Return mean and variance of each channel of x (N, C, H, W), channels_last."""
    dtype = accumulate_dtype(x.dtype)
    if x.device.type != "cpu":
        variance, mean = torch.var_mean(x.to(dtype), (2, 3), correction=0, keepdim=True)
        return Statistics(mean, variance)
    count = neighbours(x)
    wide = with_channels(x, count * x.shape[1])
    running = torch.zeros(wide.shape[1], dtype=dtype)  # its dtype is that of the result
    found = [torch.batch_norm_update_stats(one[None], running, running, 0.0) for one in wide]
    means, variances = map(torch.stack, zip(*found, strict=True))
    if count > 1:
        apart = means.view(len(wide), count, -1)
        means = apart.mean(1)
        variances = (variances.view_as(apart) + (apart - means[:, None]).square()).mean(1)
    return Statistics(means[..., None, None], variances[..., None, None])


def neighbours(x: Tensor) -> int:
    """Return how many neighbouring positions of a row of x a norm processes together."""
    return math.gcd(x.shape[3], max(1, SIDE_BY_SIDE // x.shape[1]))


def with_channels(x: Tensor, channels: int) -> Tensor:
    """Return the same rows of numbers as (N, channels, H, ...), channels_last.

    A row of x (N, C, H, W), channels_last, has W C numbers, those of a position together.
    """
    rows = x.permute(0, 2, 3, 1)
    return rows.reshape(*rows.shape[:2], -1, channels).permute(0, 3, 1, 2)


def in_strips(network: StyleNetwork, image: Tensor, blend: Tensor, rows: int) -> Tensor:
    """Return what `network(image, blend)` does, in strips of `rows` >= STRIDE rows of the picture.

    image is (1, 3, H, W), sRGB in [0, 1], and blend (1, S); see `StyleNetwork.forward`.
    """
    x = padded(image) - 0.5
    height = x.shape[2]
    for segment in network.segments:
        assert isinstance(segment, Segment)
        # Rows of a strip of this segment's input, whose height may be a quarter of the picture's.
        own = max(STRIDE, rows * x.shape[2] // height // STRIDE * STRIDE)
        x = _segment(segment, x, blend, own)
    return x[:, :, : image.shape[2], : image.shape[3]]


def _segment(segment: Segment, x: Tensor, blend: Tensor, rows: int) -> Tensor:
    statistics: list[Statistics] = []
    for _ in segment.convs:
        seen = _parts(lambda strip: segment.before_norm(strip, blend, statistics), x, rows)
        statistics.append(_measured(seen))
    whole, done = x, 0
    for part in _parts(lambda strip: segment(strip, blend, statistics), x, rows):
        count, channels, own, width = part.shape
        if done == 0:
            height = own * x.shape[2] // min(rows, x.shape[2])
            whole = part.new_empty(count, height, width, channels).permute(0, 3, 1, 2)
        whole[:, :, done : done + own] = part
        done += own
    return whole


def _parts(make: Callable[[Tensor], Tensor], x: Tensor, rows: int) -> Iterator[Tensor]:
    """Yield, for each `rows` rows of x, those that `make` returns in their place."""
    for start in range(0, x.shape[2], rows):
        top, stop = max(0, start - HALO), min(x.shape[2], start + rows)
        read = x[:, :, top : stop + HALO]
        made = make(read)
        scale = made.shape[2] / read.shape[2]
        yield made[:, :, int((start - top) * scale) : int((stop - top) * scale)]


def _measured(parts: Iterator[Tensor]) -> Statistics:
    """Return the statistics of a picture that comes in parts of several rows each."""
    counts, found = zip(*((part.shape[2], measured(part)) for part in parts), strict=True)
    means, variances = (torch.stack(values).cpu().double() for values in zip(*found, strict=True))
    weights = torch.tensor(counts, dtype=torch.float64) / sum(counts)
    mean = torch.einsum("s,s...->...", weights, means)
    second = torch.einsum("s,s...->...", weights, variances + means.square())
    variance = (second - mean.square()).clamp_min(0)
    return Statistics(mean.to(found[0].mean), variance.to(found[0].variance))
