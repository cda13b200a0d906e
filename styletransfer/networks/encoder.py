"""The style encoder, which predicts the scales and shifts of a style network from any painting.

A network with conditional instance norms represents a style by a row of scales and shifts (Dumoulin
et al. 2017). Ghiasi et al. 2017 (arXiv:1705.06830) predict this row from a painting, via a code of
100 numbers. Here the bundled feature extractor processes the painting. The means and log standard
deviations of its channels, a simple description of texture (Li et al. 2017, arXiv:1701.01036,
equation 10), pass through two linear layers with a ReLU between them.
"""

import itertools
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.func import functional_call

from styletransfer.features import build_features, optimize_for_inference
from styletransfer.features.extractor import FeatureExtractor
from styletransfer.networks.johnson import STYLED, ConditionalInstanceNorm, StyleNetwork
from styletransfer.pictures.color import monge
from styletransfer.settings import FeaturesConfig

# The layers of the feature extractor whose moments describe a style: name -> channels.
SEEN = {"relu1_1": 64, "relu2_1": 128, "relu3_1": 256, "relu4_1": 512}
# Longer side in pixels to which a picture is resized before its style is encoded. `apply` resizes
# paintings to the setting `style_size` instead. If strength is not 1, `apply` also encodes the
# photograph's own style, at this side, and mixes the two styles.
ENCODED_SIDE = 512
# Smallest side of a painting in pixels: at this size relu4_1, the deepest layer, has one position.
SMALLEST_PAINTING = 8
# Length of the code that represents a style, as in Ghiasi et al. 2017 (section 2.2).
CODE = 100
# Added to a channel's standard deviation, which may be 0, before the logarithm.
EPSILON = 1e-3
# A palette is computed from every pixel if the longer side is below this number of pixels. Larger
# pictures are subsampled.
FINE = 1024


def style_features(device: torch.device, dtype: torch.dtype) -> FeatureExtractor:
    """Return the bundled feature extractor up to the deepest layer of SEEN."""
    seen = build_features(FeaturesConfig()).ended_at(SEEN)
    return optimize_for_inference(seen, device, dtype)


@torch.no_grad()
def moments(extractor: FeatureExtractor, painting: Tensor) -> Tensor:
    """Return the moments (1, M) of a painting's features, in float32.

    They are the mean and the logarithm of the standard deviation of each channel. The painting is
    (1, 3, h, w), sRGB in [0, 1], on the device of `extractor`, which `style_features` returns.
    """
    return moments_of(extractor(painting, SEEN))


def moments_of(features: Mapping[str, Tensor]) -> Tensor:
    """Return the moments (1, M) of given features, layer -> (1, C, h, w); see `moments`."""
    found = []
    for name in SEEN:
        # Mean and variance in two passes: torch.var_mean takes four times as long on a CPU.
        values = features[name].float()
        mean = values.mean((2, 3), keepdim=True)
        variance = (values - mean).square_().mean((2, 3))
        found += [mean.flatten(1), (variance.sqrt() + EPSILON).log()]
    return torch.cat(found, dim=1)


class StyleEncoder(nn.Module):
    """A style encoder maps moments (N, M) of paintings to rows (N, R) of scales and shifts."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, network: StyleNetwork) -> None:
        super().__init__()
        seen = 2 * sum(SEEN.values())
        # Mean and standard deviation of the moments of many paintings; read from a network's file.
        self.register_buffer("mean", torch.zeros(seen))
        self.register_buffer("deviation", torch.ones(seen))
        self.code = nn.Linear(seen, CODE)
        self.rows = nn.Linear(CODE, sum(2 * norm.scale.shape[1] for norm in norms(network)))

    def forward(self, moments: Tensor) -> Tensor:
        """Return rows (N, R): all scales and shifts, norm by norm, in the order of `norms`."""
        usual = (moments.to(self.mean) - self.mean) / self.deviation
        # Each layer's input is divided by the square root of its number of values. Adam changes all
        # weights by about the same amount, so the sum over a long input would otherwise change too
        # fast.
        code = torch.relu(self.code(usual / self.code.in_features**0.5))
        rows: Tensor = self.rows(code / CODE**0.5)
        return rows


def paint_rows(network: StyleNetwork, images: Tensor, rows: Tensor) -> Tensor:
    """Return pastiches of images (N, 3, H, W), the n-th in the style of row n of `rows` (N, R).

    A row holds the R scale and shift parameters of all instance norms.
    """
    given = (name for name, _ in network.named_parameters() if name.endswith(STYLED))
    styles = dict(zip(given, split(network, rows), strict=True))
    made: Tensor = functional_call(network, styles, (images, torch.eye(len(images)).to(images)))
    return made


def color_moments(image: Tensor) -> Tensor:
    """Return the mean (3, 1) and the covariance (3, 3) of an image's colours, joined to (3, 4).

    The image is (1, 3, H, W), sRGB, and subsampled if a side has FINE pixels or more. The result
    is float64.
    """
    every = 1 + max(image.shape) // FINE
    colors = image[0, :, ::every, ::every].flatten(1).cpu().double()
    return torch.cat([colors.mean(1, keepdim=True), torch.cov(colors, correction=0)], dim=1)


def finished(pastiche: Tensor, goal: Tensor, strength: float = 1.0) -> Tensor:
    """Return a pastiche (1, 3, H, W) in [0, 1] with its colours moved to a painting's palette.

    The largest error of a network that paints any style is in its colours. An affine map, computed
    in closed form, moves the colours by the fraction `strength`, at most 1, towards `goal`, the
    result of `color_moments` for the painting.
    """
    own, share = color_moments(pastiche), min(strength, 1.0)
    change = torch.lerp(torch.eye(3).double(), monge(own[:, 1:], goal[:, 1:]), share)
    mean, end = own[:, :1], torch.lerp(own[:, :1], goal[:, :1], share)
    moved = change.to(pastiche) @ pastiche.flatten(2)[0] + (end - change @ mean).to(pastiche)
    return moved.clamp_(0.0, 1.0).view_as(pastiche)


def norms(network: nn.Module) -> list[ConditionalInstanceNorm]:
    """Return the norms of a style network, or of its `deployed` copy, in the order of modules."""
    return [module for module in network.modules() if isinstance(module, ConditionalInstanceNorm)]


def split(network: nn.Module, rows: Tensor) -> list[Tensor]:
    """Split rows (N, R) into a list: scale (N, C) and shift (N, C) of each norm in turn."""
    sizes = [size for norm in norms(network) for size in 2 * [norm.scale.shape[1]]]
    # torch.split is not used: in ONNX it is one operation, with more outputs than WebGPU allows.
    ends = itertools.accumulate(sizes)
    return [rows[:, end - size : end] for size, end in zip(sizes, ends, strict=True)]


def set_rows(network: nn.Module, rows: Tensor) -> None:
    """Replace a network's scales and shifts by rows (N, R); the network then has N styles."""
    values = iter(split(network, rows.detach()))
    for norm in norms(network):
        norm.scale, norm.shift = (nn.Parameter(next(values), False) for _ in range(2))
