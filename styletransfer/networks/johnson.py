"""Style networks in the layout of Johnson et al. 2016 (arXiv:1603.08155, supplement, table 1).

The layers are a 9 x 9 convolution, two convolutions that halve the size, residual blocks, two
convolutions that double the size, and a 9 x 9 convolution to colours. As in the authors' later
code, where both are options, each convolution has instance norm after it, and reflects the borders
of its input. Five things differ from the authors' network: upsampling is bilinear, not by
transposed convolutions; the convolutions after it repeat the borders; a filter removes a lattice
from the colours (`lattice`); a sigmoid bounds the output (the authors' tanh, moved to [0, 1]); each
norm has a scale and a shift for each style.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate, pad

from styletransfer.networks.lattice import WithoutLattice

# Ratio of the picture's height to the height of the smallest features: the size is halved twice.
STRIDE = 4
# Smallest side in pixels of a picture that is accepted. The smallest features then have at least 2
# positions per side, which reflection padding needs.
SMALLEST_SIDE = 2 * STRIDE
STYLED = (".scale", ".shift")  # endings of the names of parameters that belong to a style


class ConditionalInstanceNorm(nn.Module):
    """Instance norm with a scale and a shift for each style (Dumoulin et al. 2017, eq. 5)."""

    # Added to the variance, as in torch.nn.InstanceNorm2d, so that a constant channel stays finite.
    epsilon = 1e-5

    def __init__(self, channels: int, styles: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(styles, channels))
        self.shift = nn.Parameter(torch.zeros(styles, channels))

    def forward(self, x: Tensor, blend: Tensor) -> Tensor:
        """Return x (N, C, H, W), normalised, with the blended scale and shift of each channel.

        `blend` (N, S) is the weight of each style; each row sums to 1.
        """
        variance, mean = torch.var_mean(x, (2, 3), correction=0, keepdim=True)
        factor, offset = self.affine(blend, mean, variance)
        return torch.addcmul(offset, x, factor)

    def affine(self, blend: Tensor, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
        """Return the factor and the offset of the norm, factor * x + offset, each (N, C, 1, 1).

        `mean` and `variance` (N, C, 1, 1) are those of each channel over its positions.
        """
        scale = (blend @ self.scale)[:, :, None, None]
        shift = (blend @ self.shift)[:, :, None, None]
        factor = scale * torch.rsqrt(variance + self.epsilon)
        return factor, shift - mean * factor


class NormedConv(nn.Module):
    """This layer is a convolution with reflected borders, an instance norm, and optionally a ReLU.

    The side of the kernel is odd; a stride of 2 halves height and width, which must be even. With
    `upsample`, bilinear interpolation first doubles height and width, and the borders are repeated
    instead of reflected. A transposed convolution leaves a checkerboard pattern (Odena et al.
    2016), and so, more faintly, does nearest-neighbour upsampling.
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
        # The convolution has no bias, because the norm subtracts the mean.
        self.conv: nn.Module = nn.Conv2d(
            in_channels,
            out_channels,
            kernel,
            stride,
            kernel // 2,
            bias=False,
            padding_mode="replicate" if upsample else "reflect",
        )
        self.norm: nn.Module = ConditionalInstanceNorm(out_channels, styles)
        self.upsample, self.relu = upsample, relu

    def forward(self, x: Tensor, blend: Tensor) -> Tensor:
        """Return features of x (N, in_channels, H, W); `blend` (N, S) are the styles' weights."""
        if self.upsample:
            x = interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        normed: Tensor = self.norm(self.conv(x), blend)
        return normed.relu_() if self.relu else normed


class Segment(nn.Module):
    """A segment is a sequence of convolutions.

    With `residual`, the input is added to the output (He et al. 2016), without a ReLU after the sum
    (Johnson et al. 2016). `last`, if given, is a module after the convolutions, and has no norm.
    """

    def __init__(
        self, convs: Sequence[NormedConv], residual: bool = False, last: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.convs = nn.ModuleList(convs)
        self.residual, self.last = residual, last

    def forward(self, x: Tensor, blend: Tensor) -> Tensor:
        """Return the features for x (N, C, H, W); `blend` (N, S) is the weight of each style."""
        y = x
        for conv in self.convs:
            y = conv(y, blend)
        if self.residual:
            y = x + y
        return y if self.last is None else self.last(y)


@dataclass(frozen=True)
class Architecture:
    """An architecture is the width and depth of a style network."""

    widths: tuple[int, int, int]  # channels at full, half and quarter size
    blocks: int  # number of residual blocks


# Name -> architecture. "full" is the architecture of the paper. "small" and "tiny" have fewer
# channels, which saves time above all at full size, where the network spends most of its time.
LAYOUTS = {
    "tiny": Architecture((8, 16, 32), 3),
    "small": Architecture((16, 32, 64), 4),
    "full": Architecture((32, 64, 128), 5),
}


class StyleNetwork(nn.Module):
    """A style network paints a picture in one pass: in its styles, or with an encoder in any."""

    def __init__(self, layout: Architecture, styles: int) -> None:
        super().__init__()
        self.layout, self.styles = layout, styles
        # None, or the `encoder.StyleEncoder` that predicts scales and shifts from a painting.
        self.encoder: nn.Module | None = None
        first, second, third = layout.widths
        down = [
            NormedConv(3, first, styles, kernel=9),
            NormedConv(first, second, styles, stride=2),
            NormedConv(second, third, styles, stride=2),
        ]
        blocks = []
        for _ in range(layout.blocks):
            last = NormedConv(third, third, styles, relu=False)
            blocks.append(Segment([NormedConv(third, third, styles), last], residual=True))
        up = [
            NormedConv(third, second, styles, upsample=True),
            NormedConv(second, first, styles, upsample=True),
        ]
        colors = nn.Sequential(
            nn.Conv2d(first, 3, 9, padding=4, padding_mode="reflect"),
            WithoutLattice(),
            nn.Sigmoid(),
        )
        self.segments = nn.ModuleList([Segment(down), *blocks, Segment(up, last=colors)])

    def forward(self, image: Tensor, blend: Tensor | None = None) -> Tensor:
        """Return the pastiches (N, 3, H, W) in (0, 1).

        Args:
            image: (N, 3, H, W), sRGB in [0, 1], each side at least SMALLEST_SIDE.
            blend: (N, S), the weight of each style in each pastiche; rows add up to 1. A network of
                one style needs no blend.
        """
        if blend is None:
            blend = image.new_ones(1, 1)
        x = padded(image) - 0.5
        for segment in self.segments:
            x = segment(x, blend)
        return x[:, :, : image.shape[2], : image.shape[3]]


def padded(image: Tensor) -> Tensor:
    """Repeat the last row and column of an image until height and width are multiples of STRIDE."""
    height, width = ((side + STRIDE - 1) // STRIDE * STRIDE for side in image.shape[2:])
    # `pad` is called even if it adds nothing, because an ONNX graph could not contain an `if`.
    return pad(image, (0, width - image.shape[3], 0, height - image.shape[2]), mode="replicate")


def adopt(network: StyleNetwork, trained: StyleNetwork) -> None:
    """Copy the kernels of `trained` to `network`; give each style its mean scales and shifts.

    The mean is that of the styles of `trained`.

    Kernels take long to learn, and styles differ mostly in scales and shifts: Dumoulin et al. 2017,
    section 3.2, train only new scales and shifts to add a style to a trained network.
    """
    own = trained.segments.state_dict()
    for name in own:
        if name.endswith(STYLED):
            own[name] = own[name].mean(0, keepdim=True).expand(network.styles, -1)
    network.segments.load_state_dict(own)
