"""A default run in a new process: the files of this project on the stack at a style loss."""

import sys

import pytest
from helpers import ROOT, process

COUNT = """
import sys, traceback
from pathlib import Path

from styletransfer.losses import StyleDistance

root, seen, tap = Path({root!r}), [], StyleDistance.tap


def looked_at(self, features):
    if not seen:
        seen.extend(frame.filename for frame in traceback.extract_stack())
    return tap(self, features)


StyleDistance.tap = looked_at
sys.path.insert(0, str(root))
sys.argv = ["train.py"]
from scripts import train

train.main(["size=64", "steps=3", "device=cpu", "precision=float32", "hydra.run.dir=run"])
print("FILES", *sorted({{name for name in seen if str(root) in name}}))
"""


@pytest.mark.slow  # a new process imports torch
def test_a_plain_run_passes_few_files(tmp_path):
    """The file that is run, scripts/train.py, is a string here, and counted with the others."""
    done = process(sys.executable, "-c", COUNT.format(root=str(ROOT)), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    *_, files = (line for line in done.stdout.splitlines() if line.startswith("FILES"))
    assert len(files.split()[1:]) + 1 <= 6, files
