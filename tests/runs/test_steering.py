"""A run that is steered: other settings on the way, back to a moment, and all of it again."""

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
    """A guide that does what it is told at a step: step -> function of the work."""

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
    return lambda work: work.steer({key.replace("__", "."): each for key, each in values.items()})


def run(folder, *overrides, guide=None):
    return paint(composed("train", *TINY, *overrides), Path(folder), guide)


def again(folder, recorded):
    """Make the run that is on record in another folder."""
    config = own_settings(composed("train"), Path(recorded), [])
    return paint(config, Path(folder))


def lines(folder):
    return [json.loads(line) for line in Path(folder, "metrics.jsonl").read_text().splitlines()]


def assert_same(folder, other):
    for name in ("pastiche.png", "metrics.jsonl"):
        assert Path(folder, name).read_bytes() == Path(other, name).read_bytes()
    mine, theirs = (json.loads(Path(each, "run.json").read_text()) for each in (folder, other))
    for record in (mine, theirs):
        del record["config"]["resume"]
    assert mine["config"] == theirs["config"]
    assert mine["status"] == theirs["status"] == "finished"


def changes(folder):
    return json.loads(Path(folder, "run.json").read_text())["config"]["changes"]


STEERED = {
    "a weight": {2: steer(objective__content_weight=2.0)},
    "a loss": {3: steer(objective__style_loss="moments")},
    "a style": {2: steer(style="other.png")},
    "several styles": {5: steer(style=["style.png", "other.png"], style_weights=[2, 1])},
    "regions": {
        2: steer(
            content_regions="labels.png",
            style=["style.png", "other.png"],
            region_styles={"red": 1, "blue": 2},
        )
    },
    "protection": {6: steer(protect="mask.png")},
    "colours": {3: steer(color="content_luminance")},
    "colours of the style": {3: steer(color="content_palette", color_strength=0.5)},
    "strokes": {3: steer(style_scale=0.5, style_rotation=30)},
    "the loss mode": {3: steer(loss_mode="fake_backward")},
    "the network": {3: steer(features__pooling="average")},
    "the other optimiser": {3: steer(optimizer="adam")},
    "a larger size": {6: steer(size=48)},
    "a smaller size": {6: steer(size=20)},
    "more steps": {6: steer(steps=12)},
    "the last step of a scale": {4: steer(objective__tv_weight=0.5)},
    "the last step": {8: steer(objective__tv_weight=0.5)},
    "twice": {2: steer(objective__tv_weight=0.5), 6: steer(objective__content_weight=2.0)},
    "all at one step": {
        6: lambda work: [
            steer(size=20)(work),
            steer(objective__tv_weight=0.5)(work),
            steer(size=32)(work),
        ]
    },
    "back": {3: lambda work: work.remember("here"), 7: lambda work: work.go_back(2)},
    "back to a scale": {
        3: steer(objective__tv_weight=0.5),
        7: lambda work: work.go_back(work.moments.kept[-1].number),
    },
    "back to before a change": {
        3: steer(objective__tv_weight=0.5),
        5: lambda work: [work.go_back(2), steer(objective__content_weight=2.0)(work)],
    },
}


# Adam's moments go on where L-BFGS's history is dropped.
WITH_ADAM = ("a weight", "a larger size", "the last step of a scale", "back", "back to a scale")


@pytest.mark.parametrize(
    ("name", "optimizer"),
    [*((name, ()) for name in STEERED), *((name, ADAM) for name in WITH_ADAM)],
)
def test_the_record_makes_the_very_picture_again(name, optimizer):
    deeds = STEERED[name]
    hand = Hand(deeds)
    run("steered", *optimizer, guide=hand)
    assert not hand.deeds
    assert changes("steered")
    again("again", "steered")
    assert_same("again", "steered")
    run("plain", *optimizer)
    assert lines("plain") != lines("steered")


def test_the_command_line_says_the_same():
    run("steered", guide=Hand({3: steer(objective__content_weight=2.0, style="other.png")}))
    (change,) = changes("steered")
    assert change["after"] == 3
    assert change["set"]["objective.content_weight"] == 2.0
    run("typed", "changes=[{after:3,set:{objective.content_weight:2.0,style:other.png}}]")
    assert_same("typed", "steered")


def test_a_run_that_has_ended_can_be_steered_on():
    run("steered", guide=Hand({}, at_end=steer(size=48)))
    assert images.read("steered/pastiche.png").size == (36, 48)
    assert [change["after"] for change in changes("steered")] == [8]
    again("again", "steered")
    assert_same("again", "steered")


def test_a_change_for_a_later_step_comes_when_all_are_made():
    run("run", "changes=[{after:100,set:{size:48}}]")
    assert images.read("run/pastiche.png").size == (36, 48)


def test_the_losses_are_those_of_the_new_objective():
    run("run", "changes=[{after:3,set:{objective.content_weight:0.5,objective.tv_weight:0.1}}]")
    # The best picture so far is the last or the one before; with it the scale begins anew.
    before, after = lines("run")[1:3], lines("run")[3]
    for name, factor in (("content/relu2_1", 2), ("style/relu1_1", 1), ("total_variation", 10)):
        expected = pytest.approx(factor * min(before, key=lambda line: line["total"])[name])
        assert after[name] == expected


def test_the_scale_at_hand_begins_anew_from_the_best_picture():
    hand = Hand({6: steer(objective__content_weight=0.25)})  # as it is
    run("run", guide=hand)
    widths = [line["width"] for line in lines("run")]
    assert widths == [16] * 4 + [32] * 2 + [32] * 4
    assert hand.seen[5:7] == [(6, 8, 2), (7, 10, 2)]
    made = lines("run")
    assert made[6]["total"] == min(made[4]["total"], made[5]["total"])


def test_back_means_as_if_nothing_had_been_done_since():
    deeds = {
        2: lambda work: work.remember("here"),
        3: steer(objective__tv_weight=5.0),
        6: lambda work: work.go_back(2),
    }
    hand = Hand(deeds)
    run("run", guide=hand)
    assert changes("run") == [{"after": 2, "set": {}}]
    assert [line["step"] for line in lines("run")] == [*range(1, len(lines("run")) + 1)]
    seen = [line["total_variation"] for line in lines("run")]
    assert max(seen) < 10 * seen[0]  # none of a weight of 5
    assert [step for step, *_ in hand.seen][:8] == [1, 2, 3, 4, 5, 6, 3, 4]


def test_only_so_many_moments_are_kept():
    kept = []

    def remember(work):
        for n in range(30):
            work.remember(str(n))
        kept.extend(work.moments.kept)
        with pytest.raises(UserError, match="no moment 1 to go back to"):
            work.go_back(1)

    run("run", guide=Hand({3: remember}))
    assert [each.reason for each in kept] == [str(n) for n in range(10, 30)]


@pytest.mark.parametrize(("stop", "optimizer"), [(2, ()), (3, ()), (4, ADAM), (5, ()), (7, ADAM)])
def test_a_steered_run_that_is_stopped_goes_on_to_the_same_bytes(stop, optimizer):
    def end(work):
        raise KeyboardInterrupt

    asked = "changes=[{after:3,set:{style:other.png}},{after:5,set:{optimizer:adam}}]"
    run("whole", *optimizer, asked)
    outcome = run("run", *optimizer, asked, guide=Hand({stop: end}))
    assert outcome.result.interrupted
    config = own_settings(composed("train"), Path("run"), [])
    paint(config, Path("run"))
    assert_same("run", "whole")


def test_a_steered_run_resumes_by_its_record():
    def end(work):
        raise KeyboardInterrupt

    deeds = {3: steer(style="other.png"), 5: steer(objective__tv_weight=0.1)}
    run("whole", guide=Hand(deeds))
    run("run", guide=Hand(deeds | {6: end}))
    config = own_settings(composed("train"), Path("run"), [])
    paint(config, Path("run"))
    assert_same("run", "whole")


def test_going_back_forgets_the_checkpoint():
    seen = []

    def back(work):
        work.go_back(1)
        seen.append(list(Path("run").glob("checkpoint*")))

    run("run", "checkpoint_every=1e-9", guide=Hand({6: back}))
    assert seen == [[]]


def test_steering_drops_what_was_planned():
    planned = "changes=[{after:6,set:{size:48}}]"
    run("run", planned, guide=Hand({3: steer(objective__content_weight=1.0)}))
    assert [change["after"] for change in changes("run")] == [3]
    assert images.read("run/pastiche.png").size == (24, 32)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"objective.contnt_weight": 1}, "did you mean objective.content_weight"),
        ({"content": "other.png"}, "content cannot change during a run"),
        ({"resume": "auto"}, "resume cannot change during a run"),
        ({"size": "big"}, "size: Value 'big'"),
        ({"size": -1}, "size=-1 must be 1 or more"),
        ({"features": "vgg99"}, "there are bundled, vgg16, vgg19"),
        ({"style": "absent.png"}, "absent.png"),
        ({"objective.style_loss": "pigeon"}, "pigeon"),
        ({"objective.content_weight": -1.0}, "content_weight"),
    ],
)
def test_what_cannot_be_is_refused_and_the_run_goes_on(values, words):
    def refused(work):
        with pytest.raises(UserError, match=words):
            work.steer(values)
        assert not work.moments.kept[1:]

    run("run", guide=Hand({3: refused}))
    run("plain")
    assert_same("run", "plain")


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("[{after:3,set:{objective.contnt_weight:1}}]", "did you mean objective.content_weight"),
        ("[{after:3,set:{content:other.png}}]", "content cannot change during a run"),
        ("[{after:3,set:{style:absent.png}}]", "absent.png"),
        ("[{after:3,set:{objective.style_loss:pigeon}}]", "pigeon"),
        ("[{after:3,set:{}},{after:2,set:{}}]", "after=2 must be 3 or more"),
        ("[{after:-1,set:{}}]", "after=-1 must be 0 or more"),
        ("[{aftr:3}]", "aftr"),
        ("[{set:{size:48}}]", "after is missing"),
        ("3", "changes"),
    ],
)
@pytest.mark.parametrize("dry", [False, True])
def test_bad_changes_are_refused_before_anything_is_written(typed, words, dry, capsys):
    arguments = [*TINY, f"changes={typed}", "hydra.run.dir=run", f"dry_run={dry}"]
    with pytest.raises(SystemExit) as exit:
        cli.script("train")(arguments)
    error = capsys.readouterr().err
    assert exit.value.code == 1
    assert words in error
    assert error.count("\n") == 1
    assert not Path("run").exists()


def test_a_changed_file_of_a_change_is_noticed():
    def end(work):
        raise KeyboardInterrupt

    run("run", "changes=[{after:3,set:{style:other.png}}]", guide=Hand({6: end}))
    images.write("other.png", picture(7, 24, 32))
    config = own_settings(composed("train"), Path("run"), [])
    with pytest.raises(UserError, match=r"changes\[0\].style=.*other.png has changed"):
        paint(config, Path("run"))


def test_the_picture_is_not_written_over_the_style_of_a_change():
    with pytest.raises(UserError, match="would overwrite the style picture"):
        run("run", "output=other.png", "changes=[{after:3,set:{style:other.png}}]")


@pytest.mark.usefixtures("tiny_vgg")
def test_a_relay_is_a_run_of_the_bundled_network_that_vgg_ends(capsys):
    small = ["content=content.png", "style=style.png", "size=32", "steps=3", "device=cpu"]
    relay = ["experiment=relay", "features.weights=random", "features.pooling=average"]
    paint(composed("train", *relay, *small), Path("relay"))
    paint(composed("train", *small), Path("bundled"))
    named = "features.name:vgg19,features.weights:random,features.pooling:average"
    change = f"changes=[{{after:3,set:{{{named},steps:84}}}}]"
    paint(composed("train", *small, change), Path("spelt_out"))
    assert len(lines("relay")) == 3 + 84
    assert lines("relay")[:3] == lines("bundled")
    assert lines("relay") == lines("spelt_out")
    capsys.readouterr()
    cli.script("train")([*relay, *small, "dry_run=true"])
    told = capsys.readouterr().out
    assert told.count("in all about") == 2
    assert told.index("32 x 24: 3 steps") < told.index("after 3 steps") < told.index("84 steps")
