"""Processes of torchrun share one training of a network."""

from pathlib import Path

import pytest
import torch
from helpers import files_in, metrics_of, relative_error, write_pictures
from networks.process_runs import torchrun

from styletransfer.cli import main as console
from styletransfer.system.checkpoint import Checkpoint

pytestmark = pytest.mark.slow
# Batches of three pictures for two processes: one process has twice the other's work.
NETWORK = [
    *("style=[oil.png,wash.png]", "pictures=photos", "preview=preview.png", "style_size=32"),
    *("network=tiny", "steps=10", "batch=3", "crop=16", "precision=float64", "device=cpu"),
    *("objective.style_layers=[relu1_1]", "objective.content_layers=[relu2_1]"),
    *("preview_every=5", "checkpoint_every=1e-9"),
]


def state_of(folder):
    """Return the weights, their running mean and Adam's state as one vector, and the step."""
    state = Checkpoint(folder / "checkpoint.pt").load()
    moments = [slot[key] for slot in state["optimizer"]["state"].values() for key in slot]
    tensors = [*state["network"].values(), *state["average"].values(), *moments]
    return torch.cat([each.double().flatten() for each in tensors]), state["step"]


def test_a_training_by_two_processes_is_that_of_one(here):
    """Check one that two begin and stop at one step, of whom one is then killed; one finishes it.

    One photograph is broken. A process reports the death of another.
    """
    names = ("oil.png", "wash.png", "preview.png", "photos/a.png", "photos/b.png")
    write_pictures(*names, height=32, width=40)
    Path("photos/broken.png").write_text("no picture")
    console(["train_network", *NETWORK, "hydra.run.dir=alone"])
    alone, both = here / "alone", here / "both"
    stopped = torchrun(2, "stopped", "train_network", *NETWORK, "hydra.run.dir=both")
    assert stopped.returncode != 0
    assert stopped.stderr.count("error: ") == 1
    assert "error: interrupted\n" in stopped.stderr
    assert "run the same command to go on" in stopped.stdout
    assert stopped.stdout.count("skipped 1 unreadable") == 1
    assert stopped.stderr.count("4/10 steps") == 1  # one of the two shows progress
    assert state_of(both)[1] == 4
    killed = torchrun(2, "killed", "train_network", *NETWORK, "hydra.run.dir=both")
    assert killed.returncode != 0
    assert "going on from step 4" in killed.stdout
    assert killed.stderr.count("error: ") == 1
    assert "error: process 0 of 2 has lost another one (" in killed.stderr
    assert 4 <= state_of(both)[1] <= 7
    console(["train_network", *NETWORK, "hydra.run.dir=both"])
    assert relative_error(state_of(both)[0], state_of(alone)[0]) < 1e-10
    losses, expected = (metrics_of(each)[2] for each in (both, alone))
    assert "total" in losses
    assert losses == pytest.approx(expected, rel=1e-10)
    assert files_in(both).keys() == files_in(alone).keys()
    assert {path.name for path in here.iterdir()} == {*names[:3], "photos", "alone", "both"}
