"""A default run in a new process: the files on its stack and the imported modules."""

import sys

import pytest
from helpers import ROOT, process

COUNT = """
import sys, traceback
from pathlib import Path

from styletransfer.losses.autograd_function import StyleLoss

root, seen, forward = Path({root!r}), [], StyleLoss.forward


def looked_at(self, features):
    if not seen:
        seen.extend(frame.filename for frame in traceback.extract_stack())
    return forward(self, features)


StyleLoss.forward = looked_at
sys.path.insert(0, str(root))
sys.argv = ["train.py"]
from scripts import train

train.main(["size=64", "steps=3", "device=cpu", "precision=float32", "hydra.run.dir=run"])
ours = {{name for name in seen if str(root) in name}}
files = [Path(one.__file__) for name, one in sys.modules.items() if "styletransfer" in name]
lines = sum(len(path.read_text().splitlines()) for path in files)
print("COUNTS", len(ours), len(files), lines)
"""


@pytest.mark.slow  # a new process imports torch
def test_a_plain_run_passes_few_files_and_imports_few_modules(tmp_path):
    """Check the counts; 2 is added for the losses' file and the script, both replaced here.

    The run is the default one, with the bundled network. In float32 on a CPU it has Winograd's
    convolutions, whose module a run in bfloat16 does not import.
    """
    done = process(sys.executable, "-c", COUNT.format(root=str(ROOT)), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    *_, counts = (line for line in done.stdout.splitlines() if line.startswith("COUNTS"))
    files, modules, lines = map(int, counts.split()[1:])
    assert files + 2 <= 8
    assert modules <= 50
    assert lines <= 7600
