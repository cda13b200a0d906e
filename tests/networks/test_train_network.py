"""The command `train_network`: correct gradients, and resumed runs equal to uninterrupted ones."""

import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from helpers import (
    MODES,
    call,
    check_error,
    check_refused,
    files_in,
    layers,
    metrics_of,
    picture,
    relative_error,
    write_pictures,
)
from networks.nets import ended_early, short_training

from styletransfer.errors import UserError
from styletransfer.losses.moments import gram_matrix
from styletransfer.networks import file
from styletransfer.networks.commands.train_network import train_network
from styletransfer.networks.encoder import moments, norms, style_features
from styletransfer.networks.file import network_file
from styletransfer.networks.paintings import style_image
from styletransfer.networks.training.prepare import prepare
from styletransfer.networks.training.processes import Processes
from styletransfer.networks.training.train import check_shares, train
from styletransfer.networks.training.trainer import NetworkTraining, generator_at
from styletransfer.pictures import images
from styletransfer.runs.claim import made_by
from styletransfer.settings import LossModeConfig
from styletransfer.settings.compose import compose
from styletransfer.system.checkpoint import Checkpoint
from styletransfer.system.locks import locked
from styletransfer.system.rank import VARIABLES

DEEP = layers(style_layers=["relu5_1"])
pytestmark = pytest.mark.usefixtures("tiny_vgg")


@pytest.fixture
def config(here):
    """Return the config of a short training with two styles."""
    write_pictures("oil.png", "wash.png", "photos/a.png", "preview.png", height=32, width=40)
    return short_training(
        style=["oil.png", "wash.png"],
        pictures="photos",
        batch=2,
        style_size=24,
        preview="preview.png",
        objective=layers(),
    )


def weights_of(network):
    return torch.cat([weight.detach().flatten() for weight in network.parameters()])


@pytest.mark.parametrize("mode", MODES)
def test_the_gradient_is_that_of_the_same_losses_by_autograd(config, mode):
    """Check the losses, relative to their targets, of each picture in its own style."""
    exact = replace(config, precision="float64", loss_mode=LossModeConfig(mode))
    run = NetworkTraining(prepare(exact))
    contents = torch.cat([picture(seed, 16, 16) for seed in (7, 8, 9)])
    blend = torch.eye(2).double()[[1, 0, 1]]
    extractor, total = run.task.extractor, torch.zeros((), dtype=torch.float64)
    styles = list(run.task.styles.values())
    pastiches = run.network(contents, blend)
    for pastiche, content, number in zip(pastiches, contents, (1, 0, 1), strict=True):
        ours = extractor(pastiche[None], ["relu1_1", "relu2_1"])
        target = extractor(content[None], ["relu2_1"])["relu2_1"]
        grams = extractor(styles[number], ["relu1_1", "relu2_1"])
        loss = 0.5 * (ours["relu2_1"] - target).square().mean() / target.square().mean()
        for layer, features in ours.items():
            wanted = gram_matrix(grams[layer])
            difference = gram_matrix(features) - wanted
            loss = loss + 2.0 * difference.square().mean() / wanted.square().mean()
        total = total + loss / 3
    expected = torch.autograd.grad(total, list(run.network.parameters()))
    losses = run.differentiate(contents, torch.tensor([1, 0, 1]), share=1.0)
    assert losses["total"].item() == pytest.approx(total.item(), rel=1e-12)
    grads = [parameter.grad for parameter in run.network.parameters()]
    ours, theirs = (torch.cat([one.flatten() for one in all]) for all in (grads, expected))
    assert relative_error(ours, theirs) < 1e-12


def test_a_step_is_adamws_along_the_gradient_cut_to_length_1(config):
    """Check two steps on the pictures and styles of seed and step; the result is a running mean."""
    strong = layers(style_weight=20.0)
    exact = replace(config, precision="float64", objective=strong, averaging=0.75)
    run = NetworkTraining(prepare(exact))
    network = copy.deepcopy(run.network)
    adamw = torch.optim.AdamW(network.parameters())
    mean = weights_of(network)
    for step in range(2):
        generator = generator_at(0, step)
        shown = run.make(2, generator).double()
        numbers = torch.randint(2, (2,), generator=generator)
        run.optimizer.zero_grad()
        losses = run.differentiate(shown, numbers, share=1.0)
        slopes = [parameter.grad.clone() for parameter in run.network.parameters()]
        norm = torch.cat([slope.flatten() for slope in slopes]).norm()
        assert norm > 1.01
        for parameter, slope in zip(network.parameters(), slopes, strict=True):
            parameter.grad = slope / norm
        adamw.param_groups[0]["lr"] = run.optimizer.param_groups[0]["lr"]
        adamw.step()
        assert run.advance()["total"].item() == pytest.approx(losses["total"].item())
        assert run.optimizer.param_groups[0]["lr"] != adamw.param_groups[0]["lr"]  # the next step's
        now = weights_of(network)
        mean = 0.75 * mean + 0.25 * now if step else now
    assert relative_error(weights_of(run.network), now) < 1e-9
    assert relative_error(weights_of(run.result), mean) < 1e-9


@pytest.mark.usefixtures("signals")
def test_a_stopped_training_ends_with_equal_bits(config, tmp_path, monkeypatch, capsys):
    train_network(config, tmp_path / "whole")
    whole = Path(capsys.readouterr().out.strip())
    again = partial(train, config, tmp_path / "parts")
    for _ in ended_early(monkeypatch, NetworkTraining, again):
        assert (tmp_path / "parts" / "network.safetensors").read_bytes() != whole.read_bytes()
    assert again().read_bytes() == whole.read_bytes()
    assert metrics_of(tmp_path / "parts") == metrics_of(tmp_path / "whole")
    for step in (0, 2, 4):
        name = f"previews/step_{step:05d}.png"
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    saved, shown = file.read(whole), images.read(config.preview).rgb
    assert saved.styles == ["oil", "wash"]
    both = torch.cat([saved.network(shown, torch.eye(2)[n : n + 1]) for n in range(2)], 3)
    preview = images.read(tmp_path / "whole" / "previews" / "step_00004.png").rgb
    assert (both - preview).abs().max() < 0.005  # half an 8-bit level, and rounding


def test_a_training_that_was_killed_at_its_start_goes_on(config, tmp_path, monkeypatch):
    """A checkpoint is there before another file, however seldom checkpoints are written."""
    config = replace(config, checkpoint_every=3600)
    train(config, tmp_path / "whole")
    whole = files_in(tmp_path / "whole")
    for name in ("paint_preview", "progress_bar"):
        with monkeypatch.context() as patch:
            patch.setattr(f"styletransfer.networks.training.train.{name}", fail := Mock())
            fail.side_effect = MemoryError
            with pytest.raises(MemoryError):
                train(config, tmp_path / name)
        train(config, tmp_path / name)
        assert files_in(tmp_path / name).keys() == whole.keys()
        network = tmp_path / name / "network.safetensors"
        assert network.read_bytes() == whole["network.safetensors"]


@pytest.mark.slow
def test_a_training_goes_on_only_with_its_own_recipe(config, tmp_path):
    """Check that a training with `start` begins as the equal blend of that network's styles."""
    once = replace(config, steps=1)
    trained = train(replace(once, learning_rate=0.1), tmp_path / "first")
    with pytest.raises(UserError, match="another layout than network=small"):
        prepare(replace(config, network="small", start=str(trained)))
    assert prepare(replace(config, start="auto")).start is None  # the package has no tiny network
    third = replace(once, style=config.style[0], start=str(trained))
    run = NetworkTraining(prepare(third))
    shown = picture(5, 16, 16).float()
    blended = file.read(trained).network(shown, torch.tensor([[0.5, 0.5]]))
    assert relative_error(run.network(shown, torch.ones(1, 1)).detach(), blended) < 1e-5

    train(third, tmp_path / "run")
    trained.rename(tmp_path / "elsewhere.safetensors")
    moved = replace(third, start=str(tmp_path / "elsewhere.safetensors"))
    train(moved, tmp_path / "run")
    for changes in ({"start": None}, {"steps": 2}, {"averaging": 0.5}, {"seed": 1}):
        with pytest.raises(UserError, match="differs from the run's own"):
            train(replace(moved, **changes), tmp_path / "run")
    images.write(third.style, picture(9, 32, 40))  # another picture under the same name
    with pytest.raises(UserError, match="differs from the run's own"):
        train(moved, tmp_path / "run")


def test_what_stands_in_the_way_is_named(config, tmp_path):
    loud = replace(config, objective=layers(style_weight=3e38, content_weight=3e38))
    with pytest.raises(UserError, match="left the finite numbers at step 0"):
        train(loud, tmp_path / "loud")
    with locked(tmp_path), pytest.raises(UserError, match="another run is at work"):
        train(config, tmp_path)
    Checkpoint(tmp_path / "other" / "checkpoint.pt").save({"run": 1})
    with pytest.raises(UserError, match="settings of another version; start afresh"):
        train(config, tmp_path / "other")
    for name in ("previews", "network.safetensors", "metrics.jsonl"):
        (tmp_path / name).mkdir()
        (tmp_path / name).joinpath("mine").touch()
        with pytest.raises(UserError, match=r"holds previews already|it is a folder"):
            train(config, tmp_path)


def test_what_a_training_reads_is_no_preview_of_it(config, here):
    write_pictures("run/previews/step_00002.png", height=32, width=40)
    check_error(
        "files in .*previews would overwrite style=run/previews/step_00002.png",
        train,
        replace(config, style=["oil.png", "run/previews/step_00002.png"]),
        Path("run"),
    )


def test_a_refused_training_keeps_the_first_ones_record(config, tmp_path):
    with made_by({"overrides.yaml": "first"}):
        train(config, tmp_path)
    before = files_in(tmp_path)
    with made_by({"overrides.yaml": "second"}):
        other = replace(config, learning_rate=0.5)
        check_error("learning_rate=0.5 differs from the run's own", train, other, tmp_path)
    assert files_in(tmp_path) == before


@pytest.mark.slow
def test_a_checkpoint_of_another_form_is_refused(config, tmp_path):
    train(config, tmp_path)
    checkpoint = Checkpoint(tmp_path / "checkpoint.pt")
    whole = checkpoint.load()
    for name in whole:
        for wrong in (None, "x", -1, 10**30, [1], {"a": 1}, torch.ones(3)):
            checkpoint.save(whole | {name: wrong})
            check_error("start afresh", train, config, tmp_path)


def test_a_network_without_its_checkpoint_is_not_replaced(config, tmp_path):
    train(config, tmp_path)
    (tmp_path / "checkpoint.pt").unlink()
    before = files_in(tmp_path)
    check_error("holds network.safetensors already", train, config, tmp_path)
    assert files_in(tmp_path) == before


BAD: list[tuple[dict[str, Any], str]] = [
    ({"crop": 18}, "crop=18 must be a multiple of 4 from 8 up"),
    ({"start": "none.safetensors"}, "no style network at none.safetensors"),
    ({"style": ["oil.png"] * 1001}, "style names 1001 pictures; a network has at most 1000"),
    ({"style": ["oil.png", "photos/../oil.png"]}, "two styles are called oil; rename one"),
    ({"pictures": "no such folder"}, "is not a folder"),
    ({"objective": DEEP, "crop": 8}, "crop=8 must be at least 16"),
    ({"objective": DEEP, "style_size": 16}, "oil.png comes down to 16 x 13 pixels"),
]


def test_each_process_needs_a_picture_of_the_batch(config):
    task = prepare(replace(config, batch=2))
    check_shares(task, Processes(0, 2))
    check_error("batch=2 is too small for 3 processes", check_shares, task, Processes(0, 3))


def test_bad_settings_are_named(config, tmp_path):
    check_refused(lambda **given: train(replace(config, **given), tmp_path / "run"), BAD)
    assert not (tmp_path / "run").exists()


@torch.no_grad()
def test_one_style_starts_as_any_paints_it(config):
    one = replace(config, network="small", style="oil.png", start="any")
    start, network = file.read(network_file("any")).network, NetworkTraining(prepare(one)).network
    features = style_features(torch.device("cpu"), torch.float32)
    row = start.encoder(moments(features, style_image("oil.png", 24, 8)))
    initial = torch.cat([each for norm in norms(network) for each in (norm.scale, norm.shift)], 1)
    assert relative_error(initial, row) < 1e-6


def test_a_networks_folder_is_named_after_its_styles():
    config = compose(train_network, ["style=[a.jpg,b/c.png]"], with_hydra=True)
    assert config.hydra.run.dir == "outputs/networks/a+c"


def test_the_second_process_prints_its_own_errors_and_no_help(monkeypatch, capsys):
    for rank, words, message in (
        (0, ["-m", "seed=1,2"], "error: torchrun starts the processes of one job"),
        (1, ["stepz=1"], "error: "),
    ):
        for name, value in zip(VARIABLES, (rank, 2, rank, 2), strict=True):
            monkeypatch.setenv(name, str(value))
        status, (_, said) = call(capsys, "train_network", *words)
        assert (status, said.startswith(message)) == (1, True)
    assert call(capsys, "train_network", "--help") == (0, ("", ""))
