"""One small evaluation, studied under each loss mode; what the tests of `explain` share."""

from functools import cache

import torch
from helpers import make_objective, picture, tiny_network

from styletransfer.commands.explain.study import study
from styletransfer.features import FeatureExtractor
from styletransfer.features.extractor import WinogradConv2d
from styletransfer.features.winograd import winograd_conv

# In the order of the network: content before style at one layer.
TERMS = ["style/relu1_1", "content/relu2_1", "style/relu2_1"]


def objective(mode, pooling="max", winograd=False, **settings):
    network = tiny_network(pooling=pooling)
    if winograd:
        conv = WinogradConv2d(network.layers["conv1_2"])
        conv.forward = lambda x: winograd_conv(x, conv.kernels, conv.bias)  # small as x is
        network = FeatureExtractor(network.preprocess, {**network.layers, "conv1_2": conv})
    content, style = picture(seed=1, height=12, width=10), picture(seed=2, height=12, width=10)
    return make_objective(mode, network, content, style, **settings)


@cache
def studied(mode, tv_weight=0.0, pooling="max", winograd=False):
    watched = objective(mode, pooling, winograd, tv_weight=tv_weight)
    return study(mode, watched, torch.full((1, 3, 12, 10), 0.5, dtype=torch.float64))
