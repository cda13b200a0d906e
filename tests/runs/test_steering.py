"""A run that is steered: other settings on the way, back to a snapshot, and all of it again."""

import json
from pathlib import Path

import pytest
import torch
from helpers import composed, picture

from styletransfer import cli
from styletransfer.errors import UserError
from styletransfer.pictures import images
from styletransfer.runs.paint import paint
from styletransfer.runs.resume import own_settings

TINY = ("experiment=tiny", "content=content.png", "style=style.png", "steps=8")
ADAM = ("optimizer=adam", "optimizer.plateau=0")

pytestmark = pytest.mark.usefixtures("tiny_vgg")


@pytest.fixture(autouse=True)
def desk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(("content.png", "style.png", "other.png")):
        images.write(name, picture(seed, 24, 32))
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


def run(folder, *overrides, guide=None):
    return paint(composed("train", *TINY, *overrides), Path(folder), guide)


def again(folder, recorded):
    """Make, or finish, the run that is on record in a folder."""
    return paint(own_settings(composed("train"), Path(recorded), []), Path(folder))


def lines(folder):
    return [json.loads(line) for line in Path(folder, "metrics.jsonl").read_text().splitlines()]


def record(folder):
    return json.loads(Path(folder, "run.json").read_text())


def changes(folder):
    return record(folder)["config"]["changes"]


def assert_same(folder, other):
    for name in ("pastiche.png", "metrics.jsonl"):
        assert Path(folder, name).read_bytes() == Path(other, name).read_bytes()
    assert record(folder)["status"] == record(other)["status"] == "finished"
    assert record(folder)["config"] | {"resume": 0} == record(other)["config"] | {"resume": 0}


# One for each part of a job that a change replaces, and for each place on a run's way.
STEERED = {
    "losses": (ADAM, {3: steer(objective__style_loss="moments", objective__content_weight=2.0)}),
    "styles and regions": (
        (),
        {
            2: steer(
                content_regions="labels.png",
                style=["style.png", "other.png"],
                region_styles={"red": 1, "blue": 2},
            )
        },
    ),
    "protection, colours and strokes": (
        (),
        {6: steer(protect="mask.png", color="content_palette", style_scale=0.5)},
    ),
    "the network and its mode": (
        (),
        {3: steer(loss_mode="fake_backward", features__pooling="average")},
    ),
    "the optimiser": ((), {3: steer(optimizer="adam")}),
    "a larger size": (ADAM, {6: steer(size=48)}),
    "a smaller size, and more steps": ((), {6: steer(size=20, steps=12)}),
    "the last step of a scale, and of all": (
        ADAM,
        {4: steer(objective__tv_weight=0.5), 8: steer(objective__tv_weight=0.1)},
    ),
    "all at one step": (
        (),
        {6: lambda work: [steer(size=16, scales=1)(work), steer(size=32, scales=2)(work)]},
    ),
    "back": (ADAM, {3: lambda work: work.remember("here"), 7: lambda work: work.go_back(2)}),
    "back to before a change, and another way": (
        (),
        {
            3: steer(objective__tv_weight=0.5),
            5: lambda work: [work.go_back(2), steer(objective__content_weight=2.0)(work)],
        },
    ),
}


@pytest.mark.parametrize("name", STEERED)
def test_the_record_makes_the_very_picture_again(name):
    optimizer, deeds = STEERED[name]
    hand = Hand(deeds)
    run("steered", *optimizer, guide=hand)
    assert not hand.deeds
    assert changes("steered")
    again("again", "steered")
    assert_same("again", "steered")


def test_the_command_line_says_the_same_and_a_stopped_run_goes_on_to_it():
    deeds = {3: steer(style="other.png"), 5: steer(optimizer="adam", objective__tv_weight=0.1)}
    run("steered", guide=Hand(deeds))
    typed = "{after:3,set:{style:other.png}},{after:5,set:{optimizer:adam,objective.tv_weight:0.1}}"
    run("typed", f"changes=[{typed}]")
    assert Path("typed/pastiche.png").read_bytes() == Path("steered/pastiche.png").read_bytes()
    for step in (2, 3, 7):  # before, at and after a change
        assert run(f"{step}", f"changes=[{typed}]", guide=Hand({step: stop})).result.interrupted
        again(f"{step}", f"{step}")
        assert_same(f"{step}", "typed")
    run("run", guide=Hand(deeds | {6: stop}))
    again("run", "run")
    assert_same("run", "steered")


def test_a_run_that_has_ended_can_be_steered_on():
    run("steered", guide=Hand({}, at_end=steer(size=48)))
    assert images.read("steered/pastiche.png").size == (36, 48)
    assert [change["after"] for change in changes("steered")] == [8]
    again("again", "steered")
    assert_same("again", "steered")


def test_a_change_for_a_later_step_comes_when_all_are_made():
    run("run", "changes=[{after:100,set:{size:48}}]")
    assert images.read("run/pastiche.png").size == (36, 48)


def test_the_scale_at_hand_begins_anew_from_the_best_picture_with_the_new_losses():
    hand = Hand({6: steer(objective__content_weight=0.5, objective__tv_weight=0.1)})
    run("run", guide=hand)
    made = lines("run")
    assert [line["width"] for line in made] == [16] * 4 + [32] * 6
    assert hand.seen[5:7] == [(6, 8, 2), (7, 10, 2)]
    best = min(made[4:6], key=lambda line: line["total"])
    for name, factor in (("content/relu2_1", 2), ("style/relu1_1", 1), ("total_variation", 10)):
        assert made[6][name] == pytest.approx(factor * best[name], rel=1e-4)


def test_back_means_as_if_nothing_had_been_done_since():
    files = []

    def back(work):
        assert [entry.number for entry in work.history] == [1, 2, 3]
        work.go_back(2)
        assert [entry.number for entry in work.history] == [1, 2]
        files.extend(Path("run").glob("checkpoint*"))

    hand = Hand({2: lambda work: work.remember("here"), 3: steer(size=48), 6: back})
    run("run", "checkpoint_every=1e-9", guide=hand)
    assert changes("run") == [{"after": 2, "set": {}}]
    assert files == []  # the checkpoint belongs to another way
    assert [line["step"] for line in lines("run")] == [*range(1, len(lines("run")) + 1)]
    assert max(line["width"] for line in lines("run")) == 32
    assert [step for step, *_ in hand.seen][:8] == [1, 2, 3, 4, 5, 6, 3, 4]


def test_only_so_many_snapshots_are_kept():
    entries = []

    def remember(work):
        for n in range(30):
            work.remember(str(n))
        entries.extend(work.history)
        with pytest.raises(UserError, match="no moment 1 to go back to; there are 12, 13,"):
            work.go_back(1)

    run("run", guide=Hand({3: remember}))
    assert [entry.reason for entry in entries] == [str(n) for n in range(10, 30)]


def test_steering_drops_what_was_planned():
    planned = "changes=[{after:6,set:{size:48}}]"
    run("run", planned, guide=Hand({3: steer(objective__content_weight=1.0)}))
    assert [change["after"] for change in changes("run")] == [3]
    assert images.read("run/pastiche.png").size == (24, 32)


REFUSED = [
    ({"objective.contnt_weight": 1}, "did you mean objective.content_weight"),
    ({"content": "other.png"}, "content cannot change during a run"),
    ({"seed": 1}, "seed cannot change during a run"),
    ({"resume": "auto"}, "resume cannot change during a run"),
    ({"size": "big"}, "size: Value 'big'"),
    ({"features": "vgg99"}, "there are bundled, vgg16, vgg19"),
    ({"style": "absent.png"}, "absent.png"),
    ({"objective.style_loss": "pigeon"}, "pigeon"),
]


def test_what_cannot_be_is_refused_and_the_run_goes_on():
    def refused(work):
        for values, words in REFUSED:
            with pytest.raises(UserError, match=words):
                work.steer(values)
        assert not work.history[1:]

    run("run", guide=Hand({3: refused}))
    run("plain")
    assert_same("run", "plain")


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("[{after:3,set:{objective.contnt_weight:1}}]", "did you mean objective.content_weight"),
        ("[{after:3,set:{style:absent.png}}]", "absent.png"),
        ("[{after:3,set:{}},{after:2,set:{}}]", "after=2 must be 3 or more"),
        ("[{after:-1,set:{}}]", "after=-1 must be 0 or more"),
        ("[{aftr:3}]", "aftr"),
        ("[{set:{size:48}}]", "after is missing"),
        ("3", "changes"),
    ],
)
def test_bad_changes_are_refused_before_anything_is_written(typed, words, capsys):
    for dry in ("true", "false"):
        with pytest.raises(SystemExit) as exit:
            cli.script("train")([*TINY, f"changes={typed}", "hydra.run.dir=run", f"dry_run={dry}"])
        error = capsys.readouterr().err
        assert (exit.value.code, error.count("\n")) == (1, 1)
        assert words in error
        assert not Path("run").exists()


def test_files_of_a_change_are_the_runs_own():
    planned = "changes=[{after:3,set:{style:other.png}}]"
    with pytest.raises(UserError, match="would overwrite the style picture"):
        run("run", "output=other.png", planned)
    run("run", planned, guide=Hand({6: stop}))
    images.write("other.png", picture(7, 24, 32))
    with pytest.raises(UserError, match=r"changes\[0\].style=.*other.png has changed"):
        again("run", "run")


def test_a_relay_is_a_run_of_the_bundled_network_that_vgg_ends(capsys):
    small = ["content=content.png", "style=style.png", "size=32", "steps=3", "device=cpu"]
    relay = ["experiment=relay", "features.weights=random", "features.pooling=average"]
    paint(composed("train", *relay, *small), Path("relay"))
    paint(composed("train", *small), Path("bundled"))
    assert len(lines("relay")) == 3 + 84
    assert lines("relay")[:3] == lines("bundled")
    assert changes("relay")[1]["set"]["features.name"] == "vgg19"
    capsys.readouterr()
    cli.script("train")([*relay, *small, "dry_run=true"])
    told = capsys.readouterr().out
    assert told.count("in all about") == 2
    assert told.index("32 x 24: 3 steps") < told.index("after 3 steps") < told.index("84 steps")
