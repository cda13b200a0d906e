"""Style networks with seeded weights, and a training that ends early."""

import pytest
import torch
from helpers import press

from styletransfer.features.vgg import randomize
from styletransfer.networks.commands.train_network import TrainNetworkConfig
from styletransfer.networks.encoder import StyleEncoder
from styletransfer.networks.johnson import StyleNetwork
from styletransfer.settings import FeaturesConfig
from styletransfer.system.signals import Stopped


def style_network(layout, styles):
    """Return a style network with seeded weights, whose styles differ."""
    network = StyleNetwork(layout, styles).requires_grad_(False)
    randomize(network, seed=1)
    generator = torch.Generator().manual_seed(2)
    for name, parameter in network.named_parameters():
        if "norm" in name or "bias" in name:
            parameter.add_(torch.rand(parameter.shape, generator=generator) - 0.5)
    return network


def short_training(**settings):
    """Return the config of a training of four steps, under features with random weights."""
    return TrainNetworkConfig(
        network="tiny",
        steps=4,
        crop=16,
        preview_every=2,
        device="cpu",
        precision="float32",
        checkpoint_every=1e-9,
        features=FeaturesConfig(name="vgg19", weights="random"),
        **settings,
    )


def style_encoder(network):
    """Return a seeded encoder for a style network: two paintings get very different rows."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        encoder = StyleEncoder(network).requires_grad_(False)
    encoder.rows.weight.mul_(5)
    return encoder


def ended_early(monkeypatch, training, train):
    """Call `train` twice, and yield after each: a signal ends step 1, a sudden exit step 3."""
    advance = training.advance

    def ended(self):
        if self.step == 1:
            press()
        if self.step == 3:
            raise SystemExit(9)  # like a kill: no file is written afterwards
        return advance(self)

    with monkeypatch.context() as patch:
        patch.setattr(training, "advance", ended)
        for end in (Stopped, SystemExit):
            with pytest.raises(end):
                train()
            yield
