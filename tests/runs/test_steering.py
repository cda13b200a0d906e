"""Steering: changes of settings during a run."""

from functools import cache
from pathlib import Path

import pytest
import torch
from helpers import check_error, composed, metrics_of, record_of, write_pictures

from styletransfer.job.prepare import prepare
from styletransfer.optimize import Run
from styletransfer.pictures import images
from styletransfer.runs import recording
from styletransfer.runs.resume import own_settings
from styletransfer.settings import TrainConfig
from styletransfer.settings.changes import changed, with_values
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
    """A guide that calls `actions[step]` with the recorded run after that step."""

    def __init__(self, actions):
        self.actions, self.seen = dict(actions), []

    def __call__(self, work, iterate):
        self.seen.append((iterate.step, iterate.steps, iterate.scale))
        if action := self.actions.pop(iterate.step, None):
            action(work)


def steer(**values):
    values = {key.replace("__", "."): value for key, value in values.items()}
    return lambda work: work.steer(changed(work.config, values))


def stop(work):
    raise KeyboardInterrupt


def run(folder, guide=None, values=()):
    config = with_values(tiny(), dict(values))
    work = Run(prepare(config))
    with recording.recorded(work, config, Path(folder)) as record:
        for iterate in work:
            record(iterate)
            if guide is not None:
                with record.clock_stopped():
                    guide(record, iterate)
    return record


def resume(folder):
    return paint(own_settings(TrainConfig(), Path(folder), []), Path(folder))


REGIONS = {"content_regions": "labels.png", "region_styles": {"red": 1, "blue": 2}}
# Name -> the first settings, and step -> change. Each part of a job is replaced once.
STEERED = {
    "styles, losses, the network": (
        ADAM,
        {
            2: steer(style=["style.png", "other.png"], **REGIONS),
            3: steer(objective__style_loss="moments", objective__content_weight=2.0),
            4: steer(objective__tv_weight=0.5),  # the last step of a scale
            5: steer(loss_mode="fake_backward", features__pooling="average"),
            6: steer(protect="mask.png", color="content_palette", style_scale=0.5),
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
    "the steps that are left": (
        ADAM | {"steps": 40},
        {
            4: steer(objective__tv_weight=0.5),
            6: steer(objective__content_weight=2.0, steps=50),
            7: steer(size=40),
        },
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STEERED)
@pytest.mark.parametrize("last", [4, 6, 7])
def test_a_steered_run_resumes_to_the_same_bytes(name, last):
    values, actions = STEERED[name]
    actions = {step: action for step, action in actions.items() if step <= last}
    whole = Hand(actions)
    assert run("whole", whole, values).status == "finished"
    assert whole.actions == {}

    def act_and_stop(work):
        actions.get(last, lambda work: None)(work)
        stop(work)

    assert run("run", Hand(actions | {last: act_and_stop}), values).status == "stopped"
    resume("run")
    for file in ("pastiche.png", "metrics.jsonl"):
        assert Path("run", file).read_bytes() == Path("whole", file).read_bytes()
    ours, theirs = record_of("run"), record_of("whole")
    assert ours["status"] == theirs["status"] == "finished"
    assert ours["config"] | {"resume": 0} == theirs["config"] | {"resume": 0}


def test_a_steered_scale_restarts_at_the_best_picture():
    hand = Hand({6: steer(objective__content_weight=0.5, objective__tv_weight=0.1)})
    run("run", hand)
    made = metrics_of("run")
    assert [line["width"] for line in made] == [16] * 4 + [32] * 6
    assert hand.seen[5:7] == [(6, 8, 2), (7, 10, 2)]
    best = min(made[4:6], key=lambda line: line["total"])
    for name, factor in (("content/relu2_1", 2), ("style/relu1_1", 1), ("total_variation", 10)):
        assert made[6][name] == pytest.approx(factor * best[name], rel=1e-4)


@pytest.mark.parametrize(
    ("at", "values", "planned"),
    [([5, 25, 31], {}, 40), ([38], {}, 46), ([30], {"steps": 60}, 60)],
)
def test_a_steered_run_keeps_its_number_of_steps(at, values, planned):
    """Check runs of 20 and 20 steps: only a change in the last steps lengthens them, by a few."""
    hand = Hand(dict.fromkeys(at, steer(objective__tv_weight=0.5, **values)))
    run("run", hand, ADAM | {"steps": 40})
    assert hand.seen[-1] == (planned, planned, 2)


def test_the_last_of_several_changes_between_steps_counts():
    both = Hand({6: lambda work: [steer(size=16, scales=1)(work), steer(size=32, scales=2)(work)]})
    run("both", both)
    again = Hand({6: steer(size=32, scales=2)})
    run("once", again)
    assert both.seen == again.seen


def test_seconds_leave_out_the_time_of_the_guide(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(recording.time, "perf_counter", lambda: now[0])

    def wait(work):
        now[0] += 1000

    assert run("run", Hand({3: wait})).seconds == 0


def test_metrics_are_written_before_a_checkpoint():
    def look(work):
        assert [line["step"] for line in metrics_of("run")] == [1]

    assert run("run", Hand({1: look}), {"checkpoint_every": 1e-9}).status == "finished"


def test_no_old_checkpoint_stands_beside_new_settings(monkeypatch):
    write, stood = recording.write_record, []

    def watched(folder, *args, **facts):
        stood.append((folder / "checkpoint.pt").exists())
        write(folder, *args, **facts)

    monkeypatch.setattr(recording, "write_record", watched)
    run("run", Hand({2: steer(objective__tv_weight=0.5)}), {"checkpoint_every": 1e-9})
    assert stood[:2] == [False, False]  # at the start, and when the settings changed


def test_a_content_of_another_shape_is_refused():
    def refused(work):
        write_pictures("content.png", height=40, width=20)
        check_error("another shape now; start another run", steer(size=16), work)

    assert run("run", Hand({3: refused})).status == "finished"


def test_a_change_that_cannot_be_leaves_the_run_as_it_was():
    def refused(work):
        for values, words in (
            ({"objective.contnt_weight": 1}, "did you mean objective.content_weight"),
            ({"content": "other.png"}, "content cannot change during a run"),
            ({"style": "absent.png"}, "absent.png"),
            ({"objective.style_loss": "pigeon"}, "pigeon"),
        ):
            check_error(words, steer(**values), work)

    run("run", Hand({3: refused}))
    run("plain")
    assert Path("run/pastiche.png").read_bytes() == Path("plain/pastiche.png").read_bytes()


def test_a_new_style_is_no_file_that_the_run_writes():
    def steered(work):
        own = work.folder / "content_resized.png"
        write_pictures(str(own))
        before = own.read_bytes()
        check_error("would overwrite style=", steer(style=str(own)), work)
        assert own.read_bytes() == before
        own.unlink()

    run("run", Hand({2: steered}))
