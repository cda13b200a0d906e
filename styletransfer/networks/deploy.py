"""Rewrites a style network so that it paints fast, with equal results except for rounding.

The slowest parts of a trained network are replaced:

- Bilinear upsampling by 2 and the 3 x 3 convolution after it become one convolution. Each of the
  four outputs that lie at one position of the small features has its own 3 x 3 kernel, as in a
  sub-pixel convolution (Shi et al. 2016, arXiv:1609.05158). No enlarged features are stored.
- The last convolution makes three channels, but a vector register holds eight numbers or more. So
  2 x 2 neighbouring positions are computed together, as twelve channels: each 9 x 9 kernel becomes
  four 10 x 10 kernels with stride 2, which hold it shifted by 0 or 1 positions down and right.
- On the CPU, instance norms of few channels process neighbouring positions together, to fill a
  vector register. Their mean and variance come from PyTorch's batch norm, which is many times as
  fast as `torch.var_mean`.
"""

import copy
import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, pad, pixel_shuffle

from styletransfer.features.tensors import accumulate_dtype
from styletransfer.networks.johnson import ConditionalInstanceNorm, NormedConv, StyleNetwork

# Number of float32 values that a norm processes together on the CPU: two registers of AVX-512, or
# four of AVX2, which is enough to keep the vector units busy.
SIDE_BY_SIDE = 32
# The output channels of FourfoldConv are padded to a multiple of BLOCK, the float32 values in an
# AVX2 register. Convolutions handle channels in such blocks, and a partial block is slower. CUDA's
# tensor cores want multiples of 8 as well.
BLOCK = 8
# Bilinear upsampling by 2 in one dimension, followed by a convolution with a kernel of size 3: at
# the output position 2i + a, kernel element k reads the upsampled position 2i + a - 1 + k, a
# weighted mean of input positions. MERGED[a][p][k] is the weight of the input position i - 1 + p in
# that mean. a is 0 or 1; p and k are 0, 1 or 2.
MERGED = (
    ((0.75, 0.25, 0.0), (0.25, 0.75, 0.75), (0.0, 0.0, 0.25)),
    ((0.25, 0.0, 0.0), (0.75, 0.75, 0.25), (0.0, 0.25, 0.75)),
)


def deployed(network: StyleNetwork, dtype: torch.dtype = torch.float32) -> StyleNetwork:
    """Return a copy of a network that paints fast, and cannot be trained or saved.

    The copy's convolutions are in `dtype`. Scales, shifts and pastiches keep the network's dtype,
    and the norms compute statistics in at least float32.
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
    decoder.last[0] = FourfoldConv(decoder.last[0], dtype)
    return made.to(memory_format=torch.channels_last)


class UpsampledConv(nn.Module):
    """This layer merges bilinear upsampling and a 3 x 3 convolution into one 3 x 3 convolution."""

    kernels: Tensor

    def __init__(self, conv: nn.Conv2d, dtype: torch.dtype) -> None:
        super().__init__()
        merged = conv.weight.new_tensor(MERGED)
        kernels = torch.einsum("apk,bql,ockl->oabcpq", merged, merged, conv.weight).flatten(0, 2)
        self.register_buffer("kernels", kernels.to(dtype))

    def forward(self, x: Tensor) -> Tensor:
        """Return (N, out, 2H, 2W) for x (N, in, H, W)."""
        # In training, the border is repeated after upsampling. The result is the same.
        around = pad(x, (1, 1, 1, 1), mode="replicate")
        shifted = pixel_shuffle(conv2d(around, self.kernels), 2)
        return shifted.contiguous(memory_format=torch.channels_last)


class FourfoldConv(nn.Module):
    """This layer is a convolution with reflected borders that computes 2 x 2 outputs at once."""

    kernels: Tensor
    bias: Tensor

    def __init__(self, conv: nn.Conv2d, dtype: torch.dtype) -> None:
        super().__init__()
        self.out, self.around = conv.out_channels, conv.kernel_size[0] // 2
        self.result = conv.weight.dtype
        shifted = [pad(conv.weight, (b, 1 - b, a, 1 - a)) for a in range(2) for b in range(2)]
        kernels = torch.stack(shifted, dim=1).flatten(0, 1)
        assert conv.bias is not None  # as no norm follows the last convolution, it has a bias
        empty = -len(kernels) % BLOCK
        self.register_buffer("kernels", pad(kernels, (0, 0) * 3 + (0, empty)).to(dtype))
        self.register_buffer("bias", pad(conv.bias.repeat_interleave(4), (0, empty)).to(dtype))

    def forward(self, x: Tensor) -> Tensor:
        """Return (N, out, H, W) for x (N, in, H, W) of even height and width."""
        around = pad(x, (self.around,) * 4, mode="reflect")
        fourfold = conv2d(around, self.kernels, self.bias, stride=2)
        return pixel_shuffle(fourfold[:, : 4 * self.out].to(self.result), 2)


class SideBySideNorm(nn.Module):
    """This layer computes `norm`; on the CPU, it treats several positions of a row at once."""

    def __init__(self, norm: ConditionalInstanceNorm) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, x: Tensor, blend: Tensor) -> Tensor:
        """Return the result of `ConditionalInstanceNorm.forward`, in the dtype of x."""
        count = neighbours(x)
        factor, offset = (
            torch.cat([value.to(x.dtype)] * count, 1)
            for value in self.norm.affine(blend, *measured(x))
        )
        wide = torch.addcmul(offset, with_channels(x, factor.shape[1]), factor)
        return with_channels(wide, x.shape[1])


def measured(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and variance (N, C, 1, 1) of each channel of x (N, C, H, W), channels_last."""
    dtype = accumulate_dtype(x.dtype)
    if x.device.type != "cpu":
        variance, mean = torch.var_mean(x.to(dtype), (2, 3), correction=0, keepdim=True)
        return mean, variance
    count = neighbours(x)
    wide = with_channels(x, count * x.shape[1])
    running = torch.zeros(wide.shape[1], dtype=dtype)  # its dtype is that of the result
    found = [torch.batch_norm_update_stats(one[None], running, running, 0.0) for one in wide]
    means, variances = map(torch.stack, zip(*found, strict=True))
    if count > 1:
        apart = means.view(len(wide), count, -1)
        means = apart.mean(1)
        variances = (variances.view_as(apart) + (apart - means[:, None]).square()).mean(1)
    return means[..., None, None], variances[..., None, None]


def neighbours(x: Tensor) -> int:
    """Return how many neighbouring positions in a row of x (N, C, H, W) a norm computes at once.

    On a GPU it is 1, because the threads of a kernel read neighbouring values in any case.
    """
    if x.device.type != "cpu":
        return 1
    return math.gcd(x.shape[3], max(1, SIDE_BY_SIDE // x.shape[1]))


def with_channels(x: Tensor, channels: int) -> Tensor:
    """Return x (N, C, H, W) viewed as (N, channels, H, W C / channels), both channels_last.

    In memory, a row of x has W C numbers: the C channels of each position, one after the other.
    """
    rows = x.permute(0, 2, 3, 1)
    return rows.reshape(*rows.shape[:2], -1, channels).permute(0, 3, 1, 2)
