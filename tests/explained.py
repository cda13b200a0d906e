"""One small evaluation, studied under each loss mode; what the tests of `explain` share."""

from functools import cache

import torch
from helpers import make_objective, picture, tiny_network

from styletransfer.commands.explain.facts import Study
from styletransfer.commands.explain.study import study
from styletransfer.features import FeatureExtractor
from styletransfer.functions.winograd import transform_kernels, winograd_conv
from styletransfer.objective.whole import Objective

# In the order of the network: content before style at one layer.
TERMS = ["style/relu1_1", "content/relu2_1", "style/relu2_1"]


class Winograd(torch.nn.Module):
    """A convolution as the network has it in float32 on a CPU."""

    def __init__(self, conv: torch.nn.Conv2d) -> None:
        super().__init__()
        self.bias = torch.nn.Parameter(conv.bias.detach(), requires_grad=False)
        self.register_buffer("kernels", transform_kernels(conv.weight.detach()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return winograd_conv(x, self.kernels, self.bias)


def objective(
    mode: str, pooling: str = "max", winograd: bool = False, **settings: object
) -> Objective:
    network = tiny_network(pooling=pooling)
    if winograd:
        replaced = {"conv1_2": Winograd(network.layers["conv1_2"])}
        network = FeatureExtractor(network.preprocess, {**network.layers, **replaced})
    content, style = picture(seed=1, height=12, width=10), picture(seed=2, height=12, width=10)
    return make_objective(mode, network, content, style, **settings)


@cache
def studied(
    mode: str, tv_weight: float = 0.0, pooling: str = "max", winograd: bool = False
) -> Study:
    watched = objective(mode, pooling, winograd, tv_weight=tv_weight)
    return study(mode, watched, torch.full((1, 3, 12, 10), 0.5, dtype=torch.float64))
