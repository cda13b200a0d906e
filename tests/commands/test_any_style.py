"""Training the way from a painting to its style, and sharpening one style of such a network."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from helpers import check_refused, ended_early, layers, picture, relative_error

from styletransfer.commands.train_network.command import train_network
from styletransfer.commands.train_network.prepare import prepare
from styletransfer.commands.train_network.trainer import NetworkTraining
from styletransfer.config import FeaturesConfig, TrainNetworkConfig
from styletransfer.job.load import style_image
from styletransfer.networks import file
from styletransfer.networks.encoder import build_eye, dress, moments, norms, paint
from styletransfer.objective.inputs import pair
from styletransfer.objective.whole import style_targets_of
from styletransfer.pictures import images

RANDOM = FeaturesConfig(name="vgg19", weights="random")
pytestmark = pytest.mark.usefixtures("tiny_vgg")


@pytest.fixture
def config(tmp_path):
    """A training of a moment, of any style."""
    for seed, name in enumerate(("paintings/0.png", "paintings/1.png", "photos/a.png")):
        images.write(tmp_path / name, picture(seed, 40, 48))
    return TrainNetworkConfig(
        style=str(tmp_path / "paintings"),
        any_style=True,
        network="tiny",
        pictures=str(tmp_path / "photos"),
        steps=4,
        batch=2,
        crop=16,
        style_size=24,
        preview_every=2,
        preview=str(tmp_path / "photos/a.png"),
        device="cpu",
        precision="float32",
        checkpoint_every=1e-9,
        objective=layers(),
    )


def kernels_of(network):
    return torch.cat([w.detach().flatten() for n, w in network.named_parameters() if "conv." in n])


@pytest.mark.parametrize("features", [FeaturesConfig(), RANDOM])
@torch.no_grad()
def test_each_picture_has_a_crop_of_a_painting_or_itself_for_its_style(config, features):
    """A network paints it as it would paint a known style of the row that the encoder makes."""
    run = NetworkTraining(prepare(replace(config, precision="float64", features=features)))
    contents = torch.cat([picture(seed, 24, 24) for seed in (7, 8)])
    drawn = torch.tensor([[0.6, 0.99, 0.1, 0.5, 0.5, 0.9], [0.6, 0.99, 0.1, 0.5, 0.5, 0.01]])
    crop, own = map(run.styles.of, drawn, contents.split(1))
    assert torch.equal(own.image, contents[1:])
    painting = images.read(str(Path(config.style) / "1.png")).rgb
    painting = images.resize(painting, (27, 32)).double()
    assert torch.equal(crop.image, painting[..., 2:26, 4:28].flip(3))
    for style in (crop, own):
        inputs = pair(contents[:1], style.image)
        for layer, targets in style_targets_of(run.task.extractor, run.criterion, inputs).items():
            assert torch.equal(style.targets[layer][0].value, targets[0].value)
        assert torch.equal(style.code, moments(run.styles.eye, style.image))
    codes = torch.cat([crop.code, own.code])
    painted = paint(run.network, contents, codes)
    dress(run.network, run.network.encoder(codes))
    assert relative_error(painted, run.network(contents, torch.eye(2).double())) < 1e-12


def test_a_step_teaches_kernels_and_encoder_and_a_stopped_training_ends_with_equal_bits(
    config, tmp_path, monkeypatch
):
    run = NetworkTraining(prepare(config))
    before = [weight.detach().clone() for weight in run.network.parameters()]
    run.advance()
    moved = {
        name: not torch.equal(weight, old)
        for (name, weight), old in zip(run.network.named_parameters(), before, strict=True)
        if weight.numel()
    }
    assert moved.pop("segments.4.last.0.bias")
    assert all(moved.values()), moved
    whole = train_network(config, tmp_path / "whole")
    again = partial(train_network, config, tmp_path / "parts")
    for _ in ended_early(monkeypatch, NetworkTraining, again):
        assert (tmp_path / "parts" / "network.safetensors").read_bytes() != whole.read_bytes()
    assert again().read_bytes() == whole.read_bytes()
    saved = file.read(whole)
    assert saved.styles == []
    eye = build_eye(torch.device("cpu"), torch.float32)
    names = (Path(config.style) / f"{number}.png" for number in range(2))
    codes = [moments(eye, style_image(str(name), 24, 8)) for name in names]
    shown = images.read(config.preview).rgb
    both = torch.cat([paint(saved.network, shown, code) for code in codes], 3)
    preview = images.read(str(tmp_path / "whole/previews/step_00004.png")).rgb
    assert (both - preview).abs().max() < 0.005  # half an 8-bit step, and rounding


@torch.no_grad()
def row_of(network, painting):
    eye = build_eye(torch.device("cpu"), torch.float32)
    return network.encoder(moments(eye, style_image(painting, 24, 8)))


def test_one_style_of_it_is_sharpened_without_touching_the_kernels(config, tmp_path):
    """The training begins with the row that the encoder makes of the painting."""
    trained = train_network(config, tmp_path / "any")
    painting = str(Path(config.style) / "1.png")
    one = replace(config, any_style=False, style=painting, start=str(trained), kernels=False)
    saved, run = file.read(trained).network, NetworkTraining(prepare(one))
    begun = torch.cat([each for norm in norms(run.network) for each in (norm.scale, norm.shift)], 1)
    assert relative_error(begun.detach(), row_of(saved, painting)) < 1e-6
    made = file.read(train_network(one, tmp_path / "one"))
    assert made.styles == ["1"]
    assert torch.equal(kernels_of(made.network), kernels_of(saved))
    assert not torch.equal(
        norms(made.network)[0].scale, run.network.segments[0].convs[0].norm.scale
    )


def test_bad_settings_are_named(config, tmp_path):
    bad = [
        (
            {"style": str(tmp_path / "paintings/0.png")},
            "0.png is not a folder; name a folder of pictures",
        ),
        ({"style": str(tmp_path / "none")}, "is not a folder"),
        ({"kernels": False, "start": None}, "kernels=false trains no kernels"),
    ]
    check_refused(lambda **given: train_network(replace(config, **given), tmp_path / "run"), bad)
    assert not (tmp_path / "run").exists()
