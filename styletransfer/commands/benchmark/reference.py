"""The plain loop as this package sees it: handed in from outside, so that nothing is shared."""

from collections.abc import Mapping
from typing import Protocol

import torch
from torch import Tensor

from styletransfer.config import BenchmarkConfig
from styletransfer.features import FeatureExtractor, vgg
from styletransfer.modes import get_loss_mode
from styletransfer.objective.criterion import Criterion
from styletransfer.objective.inputs import pair
from styletransfer.objective.whole import Objective

# Multiplies all weights of the plain loop. torch's L-BFGS compares with absolute tolerances and
# its defaults suit losses as large as the tutorial's, whose style weight is 1 000 000.
SCALE = 1e6


class Reference(Protocol):
    """A plain loop for one content and one style picture."""

    picture: Tensor

    def objective(self, image: Tensor) -> Tensor:
        """Return the loss at an image (1, 3, H, W), 0-d."""
        ...

    def evaluate(self, image: Tensor) -> tuple[Tensor, Tensor]:
        """Return the loss at an image (1, 3, H, W), 0-d, and its gradient."""
        ...

    def run(self, evaluations: int) -> list[float]:
        """Optimise; keep the result in `picture` and return the loss at each evaluation."""
        ...


class MakeReference(Protocol):
    """Makes a plain loop; see `PlainLoop` in benchmarks/plain.py."""

    def __call__(
        self,
        state: Mapping[str, Tensor],
        content: Tensor,
        style: Tensor,
        content_weights: Mapping[str, float],
        style_weights: Mapping[str, float],
        padding: str,
    ) -> Reference:
        """Return the loop for these tensors, pictures and weights."""
        ...


def make_reference(
    make: MakeReference,
    config: BenchmarkConfig,
    network: FeatureExtractor,
    content: Tensor,
    style: Tensor,
    scale: float = SCALE,
) -> Reference:
    """Return the plain loop that minimises `scale` times the objective that `config` describes.

    Args:
        make: the plain loop's class.
        config: network, layers and weights.
        network: in the precision and on the device of the plain loop.
        content: (1, 3, H, W), sRGB in [0, 1].
        style: (1, 3, h, w), sRGB in [0, 1].
        scale: factor of all weights.
    """
    mode, pictures = get_loss_mode("loss_attribute"), pair(content, style)
    terms = Objective(network, mode, Criterion.of(config.objective), pictures).terms
    weights: dict[str, dict[str, float]] = {"content": {}, "style": {}}
    for term in terms:
        kind, layer = term.name.split("/")
        weights[kind][layer] = term.weight * scale
    return make(
        torchvision_state(network, config.features.name),
        content,
        style,
        weights["content"],
        weights["style"],
        config.features.padding,
    )


def torchvision_state(network: FeatureExtractor, name: str) -> dict[str, Tensor]:
    """Return the network's tensors by torchvision's names.

    Args:
        network: which may end early.
        name: bundled, vgg19 or vgg16; the bundled network is laid out as VGG-19.
    """
    keys = vgg.state_keys(vgg.WIDTHS["vgg16" if name == "vgg16" else "vgg19"])
    return {
        f"{keys[layer]}.{kind}": tensor
        for layer, module in network.layers.items()
        if isinstance(module, torch.nn.Conv2d)
        for kind, tensor in module.named_parameters()
    }
