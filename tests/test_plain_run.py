"""A default run in a new process: the files of this project on the stack inside of a loss."""

import json
import sys

import pytest
from helpers import ROOT, process

COUNT = """
import json, runpy, sys, traceback

from styletransfer.losses import content, style

seen = {}


def watched(name, formula):
    def counting(*arguments):
        frames = traceback.extract_stack()[:-1]
        if any(frame.name == "evaluate" for frame in frames):
            seen[name] = sorted({frame.filename for frame in frames})
        return formula(*arguments)

    return counting


content.mean_square = watched("content", content.mean_square)
style.moments = watched("style", style.moments)
script, *_ = sys.argv = sys.argv[1:]
runpy.run_path(script, run_name="__main__")
print(json.dumps(seen))
"""


@pytest.mark.slow  # a new process imports torch
def test_a_plain_run_passes_few_files(tmp_path):
    """The script is among them, and the loss's own file, which calls `mean_square` or `moments`."""
    words = ("size=64", "steps=3", "device=cpu", "precision=float32", "hydra.run.dir=run")
    script = ROOT / "scripts" / "train.py"
    done = process(sys.executable, "-c", COUNT, str(script), *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    package = ROOT / "styletransfer"
    for name in ("content", "style"):
        files = seen[name]
        ours = [file for file in files if file == str(script) or file.startswith(str(package))]
        assert {str(script), str(package / "losses" / f"{name}.py")} < {*ours}
        assert len(ours) <= 6, ours
