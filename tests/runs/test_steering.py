"""A run that is steered: other settings on the way, and all of it again."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch
from helpers import check_error, composed, metrics_of, picture, record_of, refusal, write_pictures

from styletransfer.pictures import images
from styletransfer.runs.recipe import own_settings
from styletransfer.settings import ChangeConfig, TrainConfig
from styletransfer.settings.values import with_values
from styletransfer.train import paint

ADAM = {"optimizer": "adam", "optimizer.plateau": 0.0}

pytestmark = pytest.mark.usefixtures("tiny_vgg")


@cache
def tiny():
    return composed("train", "experiment=tiny", "content=content.png", "style=style.png", "steps=8")


@pytest.fixture(autouse=True)
def desk(desk):
    write_pictures("content.png", "style.png", "other.png")
    labels = torch.zeros(1, 3, 24, 32)
    labels[:, 0, :, :16], labels[:, 2, :, 16:] = 1, 1
    images.write("labels.png", labels)
    images.write("mask.png", labels[:, :1].expand(1, 3, -1, -1))


class Hand:
    """A guide that does what it is told at a step: step -> function of the recorded run."""

    def __init__(self, deeds, at_end=None):
        self.deeds, self.at_end = dict(deeds), at_end
        self.seen = []

    def step(self, work, iterate):
        self.seen.append((iterate.step, iterate.steps, iterate.scale))
        if deed := self.deeds.pop(iterate.step, None):
            deed(work)

    def end(self, work):
        deed, self.at_end = self.at_end, None
        if deed is not None:
            deed(work)
        return deed is not None


def steer(**values):
    values = {key.replace("__", "."): value for key, value in values.items()}
    return lambda work: work.steer(values)


def stop(work):
    raise KeyboardInterrupt


def run(folder, guide=None, values=(), **settings):
    """Paint with some values, and settings that a run itself is about."""
    return paint(replace(with_values(tiny(), dict(values)), **settings), Path(folder), guide)


def again(folder, recorded):
    """Make, or finish, the run that is on record in a folder."""
    return paint(own_settings(TrainConfig(), Path(recorded), []), Path(folder))


def changes(folder):
    return record_of(folder)["config"]["changes"]


def assert_same(folder, other):
    for name in ("pastiche.png", "metrics.jsonl"):
        assert Path(folder, name).read_bytes() == Path(other, name).read_bytes()
    ours, theirs = record_of(folder), record_of(other)
    assert ours["status"] == theirs["status"] == "finished"
    assert ours["config"] | {"resume": 0} == theirs["config"] | {"resume": 0}


REGIONS = {"content_regions": "labels.png", "region_styles": {"red": 1, "blue": 2}}
# Each part of a job that a change replaces, and each place on a run's way.
STEERED = {
    "styles, losses, the network": (
        ADAM,
        {
            2: steer(style=["style.png", "other.png"], **REGIONS),
            3: steer(objective__style_loss="moments", objective__content_weight=2.0),
            4: steer(objective__tv_weight=0.5),  # the last step of a scale
            5: steer(loss_mode="fake_backward", features__pooling="average"),
            6: steer(protect="mask.png", color="content_palette", style_scale=0.5),
            8: steer(objective__tv_weight=0.1),  # and of all
        },
    ),
    "the optimiser and sizes": (
        {},
        {
            3: steer(optimizer="adam"),
            5: steer(size=40),
            6: lambda work: [steer(size=16, scales=1)(work), steer(size=32, scales=2)(work)],
            7: steer(size=20, steps=12),
        },
    ),
}


@pytest.mark.parametrize("name", STEERED)
def test_the_record_makes_the_very_picture_again(name):
    values, deeds = STEERED[name]
    hand = Hand(deeds)
    run("steered", hand, values)
    assert not hand.deeds
    assert changes("steered")
    again("again", "steered")
    assert_same("again", "steered")


def test_changes_on_the_command_line_survive_a_stop():
    deeds = {3: steer(style="other.png"), 5: steer(optimizer="adam", objective__tv_weight=0.1)}
    run("steered", Hand(deeds))
    typed = "{after:3,set:{style:other.png}},{after:5,set:{optimizer:adam,objective.tv_weight:0.1}}"
    words = ["experiment=tiny", "content=content.png", "style=style.png", "steps=8"]
    planned = composed("train", *words, f"changes=[{typed}]").changes
    run("typed", changes=planned)
    assert Path("typed/pastiche.png").read_bytes() == Path("steered/pastiche.png").read_bytes()
    for step in (3, 7):  # at and after a change
        assert run(f"{step}", Hand({step: stop}), changes=planned).outcome.interrupted
        again(f"{step}", f"{step}")
        assert_same(f"{step}", "typed")
    run("run", Hand(deeds | {6: stop}))
    again("run", "run")
    assert_same("run", "steered")


def test_a_run_that_has_made_all_its_steps_can_change():
    run("steered", Hand({}, at_end=steer(size=48)))
    run("planned", changes=[ChangeConfig(100, {"size": 48})])
    for folder in ("steered", "planned"):
        assert images.read(f"{folder}/pastiche.png").size == (36, 48)
    assert [change["after"] for change in changes("steered")] == [8]
    again("again", "steered")
    assert_same("again", "steered")


def test_a_steered_scale_restarts_at_the_best_picture():
    hand = Hand({6: steer(objective__content_weight=0.5, objective__tv_weight=0.1)})
    run("run", hand, changes=[ChangeConfig(8, {"size": 48})])  # dropped by whoever steers
    assert [change["after"] for change in changes("run")] == [6]
    made = metrics_of("run")
    assert [line["width"] for line in made] == [16] * 4 + [32] * 6
    assert hand.seen[5:7] == [(6, 8, 2), (7, 10, 2)]
    best = min(made[4:6], key=lambda line: line["total"])
    for name, factor in (("content/relu2_1", 2), ("style/relu1_1", 1), ("total_variation", 10)):
        assert made[6][name] == pytest.approx(factor * best[name], rel=1e-4)


def test_a_change_that_cannot_be_leaves_the_run_as_it_was():
    def refused(work):
        for values, words in (
            ({"objective.contnt_weight": 1}, "did you mean objective.content_weight"),
            ({"content": "other.png"}, "content cannot change during a run"),
            ({"style": "absent.png"}, "absent.png"),
            ({"objective.style_loss": "pigeon"}, "pigeon"),
        ):
            check_error(words, work.steer, values)

    run("run", Hand({3: refused}))
    run("plain")
    assert Path("run/pastiche.png").read_bytes() == Path("plain/pastiche.png").read_bytes()


def test_bad_changes_are_refused_before_anything_is_written(capsys):
    check_error("after=-1 must be 0 or more", run, "run", changes=[ChangeConfig(-1)])
    words = ["experiment=tiny", "content=content.png", "style=style.png", "hydra.run.dir=run"]
    for typed, dry, told in (
        ("[{after:3,set:{style:absent.png}}]", "true", "absent.png"),
        ("[{aftr:3}]", "false", "aftr"),
        ("[{set:{size:48}}]", "false", "after is missing"),
    ):
        assert told in refusal(capsys, "train", *words, f"changes={typed}", f"dry_run={dry}")
    assert not Path("run").exists()


def test_files_of_a_change_are_the_runs_own():
    planned = [ChangeConfig(3, {"style": "other.png"})]
    check_error("would overwrite style=", run, "run", output="other.png", changes=planned)
    run("run", Hand({6: stop}), changes=planned)
    images.write("other.png", picture(7, 24, 32))
    check_error(r"changes\[0\].style=.*other.png has changed", again, "run", "run")


@pytest.mark.slow
def test_a_relay_is_a_run_of_the_bundled_network_that_vgg_ends():
    small = ["content=content.png", "style=style.png", "size=24", "steps=3", "device=cpu"]
    relay = ["experiment=relay", "features.weights=random", "features.pooling=average"]
    paint(composed("train", *relay, *small), Path("relay"))
    paint(composed("train", "experiment=classic", *small), Path("bundled"))
    assert len(metrics_of("relay")) == 3 + 84
    assert metrics_of("relay")[:3] == metrics_of("bundled")
    assert changes("relay")[1]["set"]["features.name"] == "vgg19"
