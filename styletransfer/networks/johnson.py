"""The layout of Johnson et al. 2016 (arXiv:1603.08155, supplementary material, table 1).

A convolution of 9 x 9, two that halve the size, residual blocks, two that double it again, and one
of 9 x 9 to colours. As in their later code: instance norm and reflected borders. Upsampling is by
nearest neighbours instead of transposed convolutions, the output is bounded by a sigmoid (their
tanh, moved to [0, 1]), and each norm has a scale and a shift for each style.
"""

from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn.functional import pad

from styletransfer.networks.layers import NormedConv, Segment, reflected_conv

# Height and width are halved twice.
STRIDE = 4
# The reflection around the smallest features needs two positions.
SMALLEST_SIDE = 2 * STRIDE


@dataclass(frozen=True)
class Architecture:
    """How wide and how deep a network is."""

    widths: tuple[int, int, int]  # channels at full, half and quarter size
    blocks: int  # residual blocks


# full is the paper's. The narrow ones save most where most time goes: at full size.
LAYOUTS = {
    "tiny": Architecture((8, 16, 32), 3),
    "small": Architecture((16, 32, 64), 4),
    "full": Architecture((32, 64, 128), 5),
}


class StyleNetwork(nn.Module):
    """A network that paints pictures in one or several styles."""

    def __init__(self, layout: Architecture, styles: int) -> None:
        super().__init__()
        self.layout, self.styles = layout, styles
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
        colors = nn.Sequential(reflected_conv(first, 3, kernel=9), nn.Sigmoid())
        self.segments = nn.ModuleList([Segment(down), *blocks, Segment(up, last=colors)])

    def forward(self, image: Tensor, blend: Tensor | None = None) -> Tensor:
        """Return the pastiches (N, 3, H, W) in (0, 1).

        Args:
            image: (N, 3, H, W), sRGB in [0, 1], each side at least SMALLEST_SIDE.
            blend: (N, S), how much of each style each picture is to have; rows add up to 1. A
                network of one style needs none.
        """
        if blend is None:
            blend = image.new_ones(1, 1)
        x = padded(image) - 0.5
        for segment in self.segments:
            x = segment(x, blend)
        return x[:, :, : image.shape[2], : image.shape[3]]


def padded(image: Tensor) -> Tensor:
    """Return (N, 3, H, W) whose last row and column are repeated up to multiples of STRIDE."""
    # Without a branch for sizes that need none: the graph of an ONNX file has no branches.
    right, below = -image.shape[3] % STRIDE, -image.shape[2] % STRIDE
    return pad(image, (0, right, 0, below), mode="replicate")


def adopt(network: StyleNetwork, trained: StyleNetwork) -> None:
    """Begin with another network's kernels, and with the mean of its styles for each style.

    Kernels are what takes long to learn; styles differ little but in scales and shifts (Dumoulin
    et al. 2017, section 3.2, add styles to a trained network by learning those alone).
    """
    own = dict(trained.state_dict())
    for name in own:
        if name.endswith((".scale", ".shift")):
            own[name] = own[name].mean(0, keepdim=True).expand(network.styles, -1)
    network.load_state_dict(own)
