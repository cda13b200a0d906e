"""Several processes share one picture, or one training; started for real, by torchrun."""

import os
from pathlib import Path

import pytest
import torch
from helpers import ROOT, files_in, metrics_of, relative_error, write_pictures
from process_runs import torchrun

from styletransfer.cli import main as console
from styletransfer.pictures import images
from styletransfer.system.checkpoint import Checkpoint

pytestmark = pytest.mark.slow
SCRIPT = str(ROOT / "scripts" / "train.py")
# 32 rows are 16 positions of the deepest layer, 5 or 6 for each of three.
WORDS = [
    *("experiment=tiny", "content=content.png", "style=style.png", "precision=float64"),
    *("tile=16", "steps=9", "scales=1", "device=cpu", "checkpoint_every=1e-9", "resume=auto"),
]
# Three pictures for two processes: one has twice the work of the other.
NETWORK = [
    *("style=[oil.png,wash.png]", "pictures=photos", "preview=preview.png", "style_size=32"),
    *("network=tiny", "steps=10", "batch=3", "crop=16", "precision=float64", "device=cpu"),
    *("objective.style_layers=[relu1_1]", "objective.content_layers=[relu2_1]"),
    *("preview_every=5", "checkpoint_every=1e-9"),
]


@pytest.fixture
def desk(desk):
    write_pictures("content.png", "style.png", height=56, width=40)
    return desk


def check_equal(folder, expected):
    """Optimisers amplify rounding from step to step, the more the longer."""
    for ours, theirs in zip(metrics_of(folder), metrics_of(expected), strict=True):
        assert ours == pytest.approx(theirs, rel=1e-8)
    ours, theirs = (images.read(Path(each, "pastiche.png")).rgb for each in (folder, expected))
    assert (ours - theirs).abs().max() < 0.004  # a step of 8 bits


def test_processes_paint_the_picture_of_one_and_one_of_them_writes(desk):
    console(["train", *WORDS, "hydra.run.dir=alone"])
    done = torchrun(3, SCRIPT, *WORDS, "hydra.run.dir=all")
    assert done.returncode == 0, done.stderr
    check_equal("all", "alone")
    assert {*os.listdir("all")} == {*os.listdir("alone")}
    assert {*os.listdir()} == {"all", "alone", "content.png", "style.png"}
    assert done.stdout.count("done in") == 1


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
        assert {"pastiche.png", "checkpoint.pt"} < {*os.listdir("both")}
    done = torchrun(2, "killed", "train", *WORDS, "hydra.run.dir=both")
    assert done.returncode != 0
    assert "begun with processes 2" not in done.stdout
    assert done.stderr.count("error: ") == 1
    assert "error: process 0 of 2 has lost another one (" in done.stderr
    capsys.readouterr()
    console(["train", *WORDS, "hydra.run.dir=both"])
    assert "begun with processes 2, and goes on with 1" in capsys.readouterr().out
    check_equal("both", "alone")


def test_processes_that_were_given_different_settings(desk):
    done = torchrun(2, "mistaken", "train", *WORDS, "hydra.run.dir=both")
    assert done.returncode != 0
    assert done.stderr.count("error: ") == 1
    told = "all processes must be given the same: seed is 0 in process 0 and 1 in process 1\n"
    assert f"error: {told}" in done.stderr
    assert {*os.listdir()} == {"content.png", "style.png"}


# A training of a style network.
@pytest.fixture
def alone(desk, capsys):
    """Two styles, photographs of which one is broken, and what one process makes of them."""
    names = ("oil.png", "wash.png", "preview.png", "photos/a.png", "photos/b.png")
    write_pictures(*names, height=32, width=40)
    Path("photos/broken.png").write_text("no picture")
    console(["train_network", *NETWORK, "hydra.run.dir=alone"])
    capsys.readouterr()
    return desk / "alone"


def state_of(folder):
    """Return the weights, their running mean and Adam's moments, and the number of steps."""
    state = Checkpoint(folder / "checkpoint.pt").load()
    moments = [slot[key] for slot in state["optimizer"]["state"].values() for key in slot]
    tensors = [*state["network"].values(), *state["average"].values(), *moments]
    return torch.cat([each.double().flatten() for each in tensors]), state["step"]


def test_two_processes_make_the_steps_of_one_and_one_of_them_writes(alone):
    before = files_in(".").keys()
    done = torchrun(2, str(ROOT / "scripts" / "train_network.py"), *NETWORK, "hydra.run.dir=both")
    assert done.returncode == 0, done.stderr
    both = Path("both").absolute()
    assert relative_error(state_of(both)[0], state_of(alone)[0]) < 1e-10
    losses, expected = (metrics_of(each)[2] for each in (both, alone))
    assert "total" in losses
    assert losses == pytest.approx(expected, rel=1e-10)
    assert files_in(both).keys() == files_in(alone).keys()
    assert files_in(".").keys() == before | {f"both/{name}" for name in files_in(both)}
    said = done.stdout.splitlines()
    assert said[-1] == str(both / "network.safetensors")
    assert len(said) == 2
    assert "skipped 1 unreadable" in said[0]
    assert done.stderr.count("| 0/10 [") == 1  # progress bars


def test_stopped_then_killed_then_finished_by_one(alone, capsys):
    """A signal reaches all at one step; of a dead process the other one tells, at once."""
    stopped = torchrun(2, "stopped", "train_network", *NETWORK, "hydra.run.dir=both")
    assert stopped.returncode != 0
    assert stopped.stderr.count("error: ") == 1
    assert "error: interrupted\n" in stopped.stderr
    assert "run the same command to go on" in stopped.stdout
    assert stopped.stderr.count("threads at the end: ") == 2, stopped.stderr
    assert "gloo" not in stopped.stderr  # the group's, which could abort a process that ends
    both = Path("both").absolute()
    assert state_of(both)[1] == 4
    assert not (both / ".lock").exists()
    killed = torchrun(2, "killed", "train_network", *NETWORK, "hydra.run.dir=both")
    assert killed.returncode != 0
    assert "going on from step 4" in killed.stdout
    assert killed.stderr.count("error: ") == 1
    assert "error: process 0 of 2 has lost another one (" in killed.stderr
    assert 4 <= state_of(both)[1] <= 7
    console(["train_network", *NETWORK, "hydra.run.dir=both"])
    assert "processes: 1, before 2" in capsys.readouterr().out
    assert relative_error(state_of(both)[0], state_of(alone)[0]) < 1e-10
