"""Makes the plain loop that the benchmark compares with: same losses, same network weights."""

import torch
from torch import Tensor

from benchmarks.evaluations.config import BenchmarkConfig
from benchmarks.plain import PlainLoop
from styletransfer.features import FeatureExtractor, vgg
from styletransfer.losses import LOSS_MODES
from styletransfer.objective import Criterion
from styletransfer.objective.inputs import pair
from styletransfer.objective.whole import Objective


def plain_loop(
    config: BenchmarkConfig, network: FeatureExtractor, content: Tensor, style: Tensor
) -> PlainLoop:
    """Return the plain loop with the objective that `config` describes.

    Content (1, 3, H, W) and style (1, 3, h, w) are sRGB in [0, 1], with the dtype and on the device
    of `network`.
    """
    mode = LOSS_MODES["loss_attribute"]
    weights: dict[str, dict[str, float]] = {"content": {}, "style": {}}
    for term in Objective(
        network, mode, Criterion.of(config.objective), pair(content, style)
    ).terms:
        kind, layer = term.name.split("/")
        weights[kind][layer] = float(term.weight)
    state = torchvision_state(network, config.features.name)
    padding = config.features.padding
    return PlainLoop(state, content, style, weights["content"], weights["style"], padding)


def torchvision_state(network: FeatureExtractor, name: str) -> dict[str, Tensor]:
    """Return torchvision's name -> tensor of a network called `name`, or of its first layers."""
    # The bundled network has the layers of VGG-19.
    keys = vgg.state_keys(vgg.WIDTHS["vgg16" if name == "vgg16" else "vgg19"])
    return {
        f"{keys[layer]}.{kind}": tensor
        for layer, module in network.layers.items()
        if isinstance(module, torch.nn.Conv2d)
        for kind, tensor in module.named_parameters()
    }
