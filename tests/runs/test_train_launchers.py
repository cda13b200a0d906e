"""Sweeps of `train` by real launchers, in separate processes."""

import re
import sys
from pathlib import Path

import pytest
from helpers import ROOT, needs, process

WORDS = ["experiment=tiny", "content=content.png", "scales=1", "steps=2", "--multirun"]


@pytest.mark.slow
@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize("launcher", ["joblib", "submitit_local"])
def test_a_failed_job_is_named_and_the_others_are_done(launcher):
    needs("sweep", f"hydra_plugins.hydra_{launcher.partition('_')[0]}_launcher")
    words = [*WORDS, "style=style.png,missing.png", f"hydra/launcher={launcher}"]
    if launcher == "submitit_local":
        words.append("hydra.launcher.submitit_folder=sweep/.submitit")  # see docs/scale.md
    script = str(ROOT / "scripts" / "train.py")
    done = process(sys.executable, script, *words, "hydra.sweep.dir=sweep")
    assert done.returncode == 1, done.stdout
    assert "Traceback" not in done.stderr, done.stderr
    row, last = done.stderr.splitlines()[-2:]
    assert re.match("error: #1 .*: missing.png does not exist; check the path", row)
    assert last == "error: 1 of 2 jobs succeeded"
    assert Path("sweep/0/pastiche.png").exists()
    assert Path("sweep/1/error.txt").read_text() == "missing.png does not exist; check the path\n"
