"""What style networks are built of: convolutions, each with an instance norm for every style."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate


class Statistics(NamedTuple):
    """What an instance norm subtracts and divides by, (N, C, 1, 1): over a picture's positions."""

    mean: Tensor
    variance: Tensor  # not below 0


class ConditionalInstanceNorm(nn.Module):
    """Instance norm with a scale and a shift for each style (Dumoulin et al. 2017, equation 5)."""

    # Of torch's own instance norm; keeps a channel without contrast finite.
    epsilon = 1e-5

    def __init__(self, channels: int, styles: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(styles, channels))
        self.shift = nn.Parameter(torch.zeros(styles, channels))

    def forward(self, x: Tensor, blend: Tensor, statistics: Statistics | None = None) -> Tensor:
        """Return x (N, C, H, W) with the mean and the deviation that `blend` asks of each channel.

        Args:
            x: features.
            blend: (N, S), how much of each style each picture is to have; rows add up to 1.
            statistics: of the whole pictures where x is a part of them.
        """
        if statistics is None:
            variance, mean = torch.var_mean(x, (2, 3), correction=0, keepdim=True)
            statistics = Statistics(mean, variance)
        factor, offset = self.affine(blend, statistics)
        return torch.addcmul(offset, x, factor)

    def affine(self, blend: Tensor, statistics: Statistics) -> tuple[Tensor, Tensor]:
        """Return by what x is multiplied and what is added then, each (N, C, 1, 1)."""
        scale = (blend @ self.scale)[:, :, None, None]
        shift = (blend @ self.shift)[:, :, None, None]
        factor = scale * torch.rsqrt(statistics.variance + self.epsilon)
        return factor, shift - statistics.mean * factor


class NormedConv(nn.Module):
    """A convolution of a reflected picture, then an instance norm, then perhaps a ReLU.

    The side of its kernel is odd; a stride of 2 halves height and width, which are even. With
    `upsample`, each position is repeated twice along each axis first: unlike a transposed
    convolution that leaves no checkerboard (Odena et al. 2016).
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        styles: int,
        kernel: int = 3,
        stride: int = 1,
        upsample: bool = False,
        relu: bool = True,
    ) -> None:
        super().__init__()
        # The norm takes away what a bias would add.
        self.conv: nn.Module = reflected_conv(in_channels, out_channels, kernel, stride, bias=False)
        self.norm: nn.Module = ConditionalInstanceNorm(out_channels, styles)
        self.upsample, self.relu = upsample, relu

    def convolved(self, x: Tensor) -> Tensor:
        """Return what the norm sees."""
        if self.upsample:
            x = interpolate(x, scale_factor=2, mode="nearest")
        convolved: Tensor = self.conv(x)
        return convolved

    def forward(self, x: Tensor, blend: Tensor, statistics: Statistics | None = None) -> Tensor:
        """Return (N, out_channels, ...) for x (N, in_channels, H, W); see the norm."""
        normed: Tensor = self.norm(self.convolved(x), blend, statistics)
        return normed.relu_() if self.relu else normed


class Segment(nn.Module):
    """Some convolutions in a row, between which and others features are small enough to be kept.

    A `residual` one adds what came in to what goes out (He et al. 2016; no ReLU after the sum, as
    Johnson et al. 2016 have it). `last` follows without a norm.
    """

    def __init__(
        self, convs: Sequence[NormedConv], residual: bool = False, last: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.convs = nn.ModuleList(convs)
        self.residual, self.last = residual, last

    def forward(self, x: Tensor, blend: Tensor, statistics: Sequence[Statistics] = ()) -> Tensor:
        """Return the features after it for x (N, C, H, W); the rest is as each norm takes it."""
        y = x
        for number, conv in enumerate(self.convs):
            y = conv(y, blend, statistics[number] if statistics else None)
        if self.residual:
            y = x + y
        return y if self.last is None else self.last(y)

    def before_norm(self, x: Tensor, blend: Tensor, statistics: Sequence[Statistics]) -> Tensor:
        """Return what the norm sees that follows those whose statistics are known."""
        for conv, known in zip(self.convs, statistics, strict=False):
            x = conv(x, blend, known)
        following = self.convs[len(statistics)]
        assert isinstance(following, NormedConv)
        return following.convolved(x)


def reflected_conv(
    in_channels: int, out_channels: int, kernel: int, stride: int = 1, bias: bool = True
) -> nn.Conv2d:
    """Return a convolution that pads with the reflected picture, so that no frame is seen."""
    around = kernel // 2
    channels = in_channels, out_channels
    return nn.Conv2d(*channels, kernel, stride, around, bias=bias, padding_mode="reflect")
