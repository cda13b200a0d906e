"""Sweeps of `train` by real launchers in separate processes: killed sweeps and failed jobs."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import ROOT, begun, record_of, until

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("desk")]

LAUNCHERS = ["joblib", "submitit_local"]
SCRIPT = [sys.executable, str(ROOT / "scripts" / "train.py")]
WORDS = [
    *("experiment=tiny", "content=content.png", "style=style.png", "scales=1"),
    *("optimizer.plateau=0", "checkpoint_every=0.1"),
]
# Code that each new Python process runs first: a run waits after step 10 for the file `go`.
WAIT = """
import os, sys, time

def wait(event, given):
    while event == "os.rename" and "step_00010.png" in str(given[1]) and not os.path.exists(GO):
        time.sleep(0.01)

sys.addaudithook(wait)
"""
LATER = ["steps=20", "snapshot_every=10", "checkpoint_every=1e-9"]
TWO_WORKERS = "hydra.launcher.n_jobs=2"
ONE_THREAD = os.environ | {"OMP_NUM_THREADS": "1"}


def begin(launcher, *words, environment=ONE_THREAD):
    """Start a sweep with the folder `sweep`, in a new process group; return the process."""
    pytest.importorskip(f"hydra_plugins.hydra_{launcher.partition('_')[0]}_launcher")
    swept = ["--multirun", f"hydra/launcher={launcher}", "hydra.sweep.dir=sweep", "resume=auto"]
    command = (*SCRIPT, *WORDS, *words, *swept)
    return begun(*command, env=environment, stderr=subprocess.STDOUT)


@pytest.fixture
def waiting(desk):
    """Return an environment in which a run waits after ten steps for the file `go`."""
    (desk / "start").mkdir()
    (desk / "start/sitecustomize.py").write_text(f"GO = {str(desk / 'go')!r}\n{WAIT}")
    paths = [str(desk / "start"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return ONE_THREAD | {"PYTHONPATH": os.pathsep.join(paths)}


def end(process):
    """Wait for `process` to end; return its exit status and output."""
    printed, _ = process.communicate(timeout=300)
    return process.returncode, printed


def wait_for(*names):
    """Wait until the files `names` exist."""
    until(lambda: all(Path(name).exists() for name in names))


def status(job):
    return record_of(f"sweep/{job}")["status"]


def alone(*words):
    """Return the bytes of the pastiche of a single run."""
    subprocess.run([*SCRIPT, *WORDS, *words, "hydra.run.dir=alone"], env=ONE_THREAD, check=True)
    return Path("alone/pastiche.png").read_bytes()


def of_job(job):
    return Path(f"sweep/{job}/pastiche.png").read_bytes()


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_sweep_that_was_killed_goes_on(launcher, waiting):
    words = [*LATER[1:], "steps=2,20,20", "seed=3", "init=noise", "hydra.sweeper.max_batch_size=3"]
    words += [TWO_WORKERS] if launcher == "joblib" else []
    process = begin(launcher, *words, environment=waiting)
    wait_for("sweep/0/pastiche.png", "sweep/1/checkpoint.pt")
    until(lambda: status(0) == "finished")
    os.killpg(process.pid, signal.SIGKILL)
    end(process)
    assert not Path("sweep/1/pastiche.png").exists()
    before = Path("sweep/0/pastiche.png").stat().st_mtime_ns
    code, printed = end(begin(launcher, *words))
    assert code == 0, printed
    assert printed.endswith("3 of 3 jobs succeeded\n")
    assert Path("sweep/0/pastiche.png").stat().st_mtime_ns == before
    assert "going on from step" in Path("sweep/1/train.log").read_text()
    assert of_job(1) == of_job(2) == alone("steps=20", "seed=3", "init=noise")


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_failed_job_is_named_and_the_others_are_done(launcher):
    code, printed = end(begin(launcher, "steps=2", "style=style.png,missing.png"))
    assert code == 1, printed
    assert "Traceback" not in printed
    row, last = printed.splitlines()[-2:]
    assert re.match("error: #1 .*: missing.png does not exist; check the path", row)
    assert last == "error: 1 of 2 jobs succeeded"
    assert Path("sweep/0/pastiche.png").exists()
    assert Path("sweep/1/error.txt").read_text() == "missing.png does not exist; check the path\n"
