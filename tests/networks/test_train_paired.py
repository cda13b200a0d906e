"""A network learns how a painted photograph was painted, from frames of a film."""

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from films.clips import grid, scene
from helpers import check_error, check_refused, needs, picture, write_pictures
from networks.nets import ended_early, short_training

from styletransfer.copying.copied import HELD
from styletransfer.networks import file
from styletransfer.networks.commands.train_network import TrainNetworkConfig
from styletransfer.networks.training import paired
from styletransfer.networks.training.paired import Pairs, spread
from styletransfer.networks.training.prepare import prepare
from styletransfer.networks.training.train import train
from styletransfer.networks.training.trainer import NetworkTraining
from styletransfer.pictures import images

pytestmark = pytest.mark.usefixtures("tiny_vgg")


def filmed(time):
    """Return the frame (1, 3, 24, 32) at `time`, in frames, of a camera that moves right."""
    x, y = grid(24, 32)
    return scene(x + 1.5 * time, y)


def painted(photograph):
    """Return the painting of a frame: its negative."""
    return 1 - photograph


@pytest.fixture
def config(here):
    """Return the config of a short training from three frames, of which the second was painted."""
    needs("video", "av", "cv2")
    for time in range(3):
        images.write(f"film/{time}.png", filmed(time))
    images.write("painted.png", painted(filmed(1)))
    return short_training(
        style="painted.png",
        style_source="film/1.png",
        start=None,
        pictures="film",
        style_size=32,
    )


def pairs_of(config):
    """Return the pairs (N, 6, 24, 24) that a training crops, the given one first."""
    return torch.stack([pair[:, :, :24] for pair in prepare(config).make.photos])


def test_frames_are_painted_like_the_photograph(config):
    given, *frames = pairs_of(config)
    assert len(frames) == 3
    for pair, time in zip((given, *frames), (1, 0, 1, 2), strict=True):
        assert (pair[:3] - filmed(time)[0, :, :, :24]).abs().max() < 0.005
        wanted = painted(filmed(time))[0, :, :, :24]
        assert (pair[3:] - wanted).abs().mean() < 0.2 * (pair[:3] - wanted).abs().mean()


def test_without_a_film_the_given_pair_alone_is_learned(config):
    alone = replace(config, pictures=TrainNetworkConfig.pictures)
    assert pairs_of(alone).equal(pairs_of(config)[:1])


def test_a_crop_shows_the_same_place_twice():
    x, y = grid(20, 30)
    place = torch.stack([x, y, x + 30 * y, x, y, x + 30 * y])
    make = Pairs([place], 8)
    first, other = (make(3, torch.Generator().manual_seed(seed)) for seed in (0, 1))
    assert first.shape == (3, 6, 8, 8)
    assert first[:, :3].equal(first[:, 3:])
    assert not first.equal(other)
    assert Pairs([place], 384)(1, torch.Generator()).shape[2:] == (20, 20)


def test_a_long_film_gives_frames_at_equal_distances(config, monkeypatch):
    monkeypatch.setattr(paired, "FRAMES", 2)
    shutil.rmtree("film")
    for time in range(9):
        images.write(f"film/{time}.png", torch.full((1, 3, 24, 32), time / 10))
    frames = spread(Path("film"), side=16)
    assert [round(10 * float(one.mean())) for one in frames] == [0, 4, 8]
    assert {one.shape for one in frames} == {(1, 3, 12, 16)}


def test_losses_compare_with_the_painted_frame(config):
    run = NetworkTraining(prepare(replace(config, precision="float64")))
    shown = torch.cat([picture(3, 16, 16), picture(4, 16, 16)], 1)
    losses = run.differentiate(shown, torch.tensor([0]), share=1.0)
    pastiche, wanted = run.network(shown[:, :3]).detach(), shown[:, 3:]
    error = HELD * (pastiche - wanted).square().mean()
    assert losses["copied"].item() == pytest.approx(error.item(), rel=1e-12)
    for layer in paired.LEARNT:
        ours, theirs = (run.task.extractor(one, [layer])[layer] for one in (pastiche, wanted))
        apart = (ours - theirs).square().mean() / theirs.square().mean()
        assert losses[f"content/{layer}"].item() == pytest.approx(apart.item(), rel=1e-12)


def test_all_paintings_are_one_style(config):
    images.write("last/painted.png", painted(filmed(2)))
    two = replace(
        config, style=["painted.png", "last/painted.png"], style_source=["film/1.png", "film/2.png"]
    )
    task = prepare(two)
    assert (task.names, len(task.hashes), len(pairs_of(two))) == (["painted"], 2, 5)


@pytest.mark.slow
def test_the_network_paints_a_further_frame_like_the_painter(config):
    trained = train(replace(config, steps=150, learning_rate=0.02, crop=24), Path("run"))
    frame = filmed(4).float()
    apart = (file.read(trained).network(frame) - painted(frame)).abs().mean()
    assert apart < 0.4 * (frame - painted(frame)).abs().mean()


@pytest.mark.slow
@pytest.mark.usefixtures("signals")
def test_a_stopped_training_of_pairs_ends_with_equal_bits(config, monkeypatch):
    whole = train(config, Path("whole"))
    again = partial(train, config, Path("parts"))
    for _ in ended_early(monkeypatch, NetworkTraining, again):
        pass
    assert again().read_bytes() == whole.read_bytes()


def test_another_painting_of_the_same_name_is_refused(config):
    train(replace(config, steps=1), Path("run"))
    shutil.move("film/1.png", "moved.png")
    moved = replace(config, steps=1, style_source="moved.png", pictures=TrainNetworkConfig.pictures)
    train(moved, Path("run"))
    images.write("painted.png", painted(filmed(1)).flip(1))
    check_error("differs from the run's own", train, moved, Path("run"))


def test_bad_pairs_are_named(config):
    write_pictures("wide.png", height=8, width=40)
    cases = [
        ({"style_source": ["film/0.png", "film/1.png"]}, "style_source names 2 photographs"),
        ({"style_source": "wide.png"}, "wide.png"),
        ({"style_source": "painted.png"}, "style_source shows the same picture as style"),
        ({"pictures": "none.mp4"}, "none.mp4 does not exist"),
    ]
    check_refused(lambda **given: train(replace(config, **given), Path("run")), cases)
    assert not Path("run").exists()
