"""Style networks with seeded weights, `apply` with one, and a training that ends early."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from helpers import press

from styletransfer.features.vgg import randomize
from styletransfer.networks import file
from styletransfer.networks.apply.paint import apply_network
from styletransfer.networks.commands.apply import ApplyConfig
from styletransfer.networks.commands.train_network import TrainNetworkConfig
from styletransfer.networks.encoder import StyleEncoder
from styletransfer.networks.johnson import Architecture, StyleNetwork
from styletransfer.settings import FeaturesConfig
from styletransfer.system.signals import Stopped

SLIM = Architecture((3, 4, 5), 1)


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


def write_network(*styles):
    """Write net.safetensors, a slim network of these styles, or any.safetensors; return it."""
    network = style_network(SLIM, len(styles))
    network.encoder = None if styles else style_encoder(network)
    file.write(Path("net.safetensors" if styles else "any.safetensors"), network, [*styles])
    return network


def applying(source, target):
    """Return a function that calls `apply` in float32 on the CPU, with other settings if given."""
    config = ApplyConfig("net.safetensors", source, target, device="cpu", precision="float32")
    return lambda **changed: apply_network(replace(config, **changed))


def close(ours, theirs):
    """Return whether two pictures are equal up to the rounding of both to 8 bits."""
    return bool((ours - theirs).abs().max() < 1.1 / 255)


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
