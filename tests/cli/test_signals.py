"""On a signal every command prints one line, exits with its status, and leaves no partial file."""

import signal
import sys

import pytest
from helpers import ROOT, call, press, process

from styletransfer.cli import script
from styletransfer.settings.commands import module
from styletransfer.system import STOPPING
from styletransfer.system.files import atomic

pytestmark = pytest.mark.usefixtures("signals")


@pytest.mark.slow
def test_runs_killed_at_random_end_in_equal_bytes(tmp_path, request):
    """`--kills=600` makes 600 runs."""
    count = request.config.getoption("--kills")
    attack = str(ROOT / "tests" / "hard_runs.py")
    done = process(sys.executable, attack, str(tmp_path), str(count))
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


# Hydra runs `train`; `gradcheck` runs without Hydra.
@pytest.mark.parametrize(
    ("name", "number"), [("train", signal.SIGTERM), *(("gradcheck", n) for n in STOPPING)]
)
def test_a_command_that_is_stopped(name, number, here, monkeypatch, capsys):
    def stopped(*args):
        with atomic(here / "half") as temporary:
            temporary.write_text("begun")
            press(number)
            press()
        pytest.fail("not reached")

    monkeypatch.setattr(f"{module(name)}.main", stopped)
    status, printed = call(capsys, run=script(name))
    assert (status, printed.err) == (128 + number, "error: interrupted\n")
    assert [path.read_text() for path in here.iterdir()] == ["begun"]
