"""Several processes share one picture; started for real, by torchrun."""

from pathlib import Path

import pytest
from helpers import ROOT, composed, metrics_of, picture
from process_runs import torchrun

from styletransfer.cli import main as console
from styletransfer.errors import UserError
from styletransfer.job.prepare import prepare
from styletransfer.pictures import images
from styletransfer.system.processes import Processes

SCRIPT = str(ROOT / "scripts" / "train.py")
# 32 rows are 16 positions of the deepest layer, 5 or 6 for each of three.
WORDS = [
    *("experiment=tiny", "content=content.png", "style=style.png", "precision=float64"),
    *("tile=16", "steps=9", "scales=1", "device=cpu", "checkpoint_every=1e-9", "resume=auto"),
]


@pytest.fixture
def desk(tmp_path, monkeypatch):
    for seed, name in enumerate(("content.png", "style.png")):
        images.write(tmp_path / name, picture(seed, 56, 40))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names_in(folder: str | Path) -> set[str]:
    return {path.name for path in Path(folder).iterdir()}


def check_equal(folder: str, expected: str) -> None:
    """Optimisers amplify rounding from step to step, the more the longer."""
    for ours, theirs in zip(metrics_of(folder), metrics_of(expected), strict=True):
        assert ours == pytest.approx(theirs, rel=1e-8)
    ours, theirs = (images.read(Path(each, "pastiche.png")).rgb for each in (folder, expected))
    assert (ours - theirs).abs().max() < 0.004  # a step of 8 bits


@pytest.mark.slow
def test_processes_paint_the_picture_of_one_and_one_of_them_writes(desk):
    console(["train", *WORDS, "hydra.run.dir=alone"])
    done = torchrun(3, SCRIPT, *WORDS, "hydra.run.dir=all")
    assert done.returncode == 0, done.stderr
    check_equal("all", "alone")
    assert names_in("all") == names_in("alone")
    assert names_in(desk) == {"all", "alone", "content.png", "style.png"}
    assert done.stdout.count("done in") == 1


@pytest.mark.slow
def test_told_to_stop_then_stopped_then_killed_then_finished_by_one(desk, capsys):
    """A signal to any process stops all at one step; of a dead one the others tell, at once."""
    console(["train", *WORDS, "hydra.run.dir=alone"])
    # torchrun takes its time to hand a signal on, and the run goes on meanwhile.
    for what, count, possible in (("told", 3, [3]), ("stopped", 2, range(4, 9))):
        done = torchrun(count, what, "train", *WORDS, "hydra.run.dir=both")
        assert done.returncode != 0
        assert "error: " not in done.stderr
        assert "gloo" not in done.stderr  # among the threads at the end
        assert "stopped early after" in done.stdout
        steps = len(metrics_of("both"))
        assert steps in possible
        assert f", {steps} steps," in done.stdout
        assert {"pastiche.png", "checkpoint.pt"} < names_in("both")
    done = torchrun(2, "killed", "train", *WORDS, "hydra.run.dir=both")
    assert done.returncode != 0
    assert "begun with processes 2" not in done.stdout
    assert done.stderr.count("error: ") == 1
    assert "error: process 0 of 2 has lost another one (" in done.stderr
    capsys.readouterr()
    console(["train", *WORDS, "hydra.run.dir=both"])
    said = capsys.readouterr().out
    assert "begun with processes 2, and goes on with 1" in said
    check_equal("both", "alone")


@pytest.mark.slow
def test_processes_that_were_given_different_settings(desk):
    done = torchrun(2, "mistaken", "train", *WORDS, "hydra.run.dir=both")
    assert done.returncode != 0
    assert done.stderr.count("error: ") == 1
    told = "all processes must be given the same: seed is 0 in process 0 and 1 in process 1\n"
    assert f"error: {told}" in done.stderr
    assert names_in(desk) == {"content.png", "style.png"}


def test_runs_that_cannot_be_shared(desk):
    for word, message in (
        ("loss_mode=fake_backward", "has none; choose loss_mode=autograd_function"),
        ("tile=off", "tile=off leaves nothing to share; leave it out"),
    ):
        with pytest.raises(UserError, match=message):
            prepare(composed("train", *WORDS, word), processes=Processes(0, 2))
