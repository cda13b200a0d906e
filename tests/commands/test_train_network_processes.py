"""Several processes train the network that one would train; started for real, by torchrun."""

import json
from pathlib import Path

import pytest
import torch
from helpers import ROOT, picture, relative_error
from process_runs import torchrun

from styletransfer.cli import main as console
from styletransfer.pictures import images
from styletransfer.system.checkpoint import Checkpoint

pytestmark = pytest.mark.slow
SCRIPT = str(ROOT / "scripts" / "train_network.py")
# Three pictures for two processes: one has twice the work of the other.
WORDS = [
    *("style=[oil.png,wash.png]", "pictures=photos", "preview=preview.png", "style_size=32"),
    *("network=tiny", "steps=10", "batch=3", "crop=16", "precision=float64", "device=cpu"),
    *("objective.style_layers=[relu1_1]", "objective.content_layers=[relu2_1]"),
    *("preview_every=5", "checkpoint_every=1e-9"),
]


@pytest.fixture
def alone(tmp_path, monkeypatch, capsys):
    """Two styles, photographs of which one is broken, and what one process makes of them."""
    for seed, name in enumerate(("oil", "wash", "preview", "photos/a", "photos/b")):
        images.write(tmp_path / f"{name}.png", picture(seed, 32, 40))
    (tmp_path / "photos" / "broken.png").write_text("no picture")
    monkeypatch.chdir(tmp_path)
    console(["train_network", *WORDS, "hydra.run.dir=alone"])
    capsys.readouterr()
    return tmp_path / "alone"


def state_of(folder: Path) -> tuple[torch.Tensor, int]:
    """Return the weights, their running mean and Adam's moments, and the number of steps."""
    state = Checkpoint(folder / "checkpoint.pt").load()
    moments = [slot[key] for slot in state["optimizer"]["state"].values() for key in slot]
    tensors = [*state["network"].values(), *state["average"].values(), *moments]
    return torch.cat([each.double().flatten() for each in tensors]), state["step"]


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_two_processes_make_the_steps_of_one_and_one_of_them_writes(alone):
    before = files_in(alone.parent)
    done = torchrun(2, SCRIPT, *WORDS, "hydra.run.dir=both")
    assert done.returncode == 0, done.stderr
    both = Path("both").absolute()
    assert relative_error(state_of(both)[0], state_of(alone)[0]) < 1e-10
    losses, expected = (
        json.loads((each / "metrics.jsonl").read_text().splitlines()[2]) for each in (both, alone)
    )
    assert "total" in losses
    assert losses == pytest.approx(expected, rel=1e-10)
    assert files_in(both) == files_in(alone)
    assert files_in(alone.parent) == before | {"both"} | {f"both/{name}" for name in files_in(both)}
    said = done.stdout.splitlines()
    assert said[-1] == str(both / "network.safetensors")
    assert len(said) == 2
    assert "skipped 1 unreadable" in said[0]
    assert done.stderr.count("| 0/10 [") == 1  # progress bars


def test_stopped_then_killed_then_finished_by_one(alone, capsys):
    """A signal reaches all at one step; of a dead process the other one tells, at once."""
    stopped = torchrun(2, "stopped", "train_network", *WORDS, "hydra.run.dir=both")
    assert stopped.returncode != 0
    assert stopped.stderr.count("error: ") == 1
    assert "error: interrupted\n" in stopped.stderr
    assert "run the same command to go on" in stopped.stdout
    assert stopped.stderr.count("threads at the end: ") == 2, stopped.stderr
    assert "gloo" not in stopped.stderr  # the group's, which could abort a process that ends
    both = Path("both").absolute()
    assert state_of(both)[1] == 4
    assert not (both / ".lock").exists()
    killed = torchrun(2, "killed", "train_network", *WORDS, "hydra.run.dir=both")
    assert killed.returncode != 0
    assert "going on from step 4" in killed.stdout
    assert killed.stderr.count("error: ") == 1
    assert "error: process 0 of 2 has lost another one (" in killed.stderr
    assert 4 <= state_of(both)[1] <= 7
    console(["train_network", *WORDS, "hydra.run.dir=both"])
    assert "processes: 1, before 2" in capsys.readouterr().out
    assert relative_error(state_of(both)[0], state_of(alone)[0]) < 1e-10
