"""On a signal every command prints one line, exits with its status, and leaves no partial file."""

import os
import random
import signal
import sys
import time
from functools import partial

import pytest
from helpers import begun, call, files_in, press, status_of, until

from styletransfer.cli.hydrated import run_command
from styletransfer.settings.registry import commands
from styletransfer.system.files import atomic
from styletransfer.system.signals import STOPPING

pytestmark = pytest.mark.usefixtures("signals")


def steps_of(folder):
    """Return how many steps a run has written so far."""
    written = folder / "metrics.jsonl"
    return written.read_bytes().count(b"\n") if written.exists() else 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("steps", "words"), [(60, "optimizer.plateau=0"), (12, "optimizer=adam tile=32")]
)
def test_runs_killed_at_random_end_in_equal_bytes(steps, words, desk, request):
    """Kill each run at a random step; `--kills=600` makes 600."""
    words = f"experiment=tiny content=content.png style=style.png size=64 {words} device=cpu"
    train = ["train", *words.split(), f"steps={steps}", "checkpoint_every=1e-9"]
    one_thread, chance = os.environ | {"OMP_NUM_THREADS": "1"}, random.Random(1)
    assert status_of(*train, "hydra.run.dir=whole") == 0
    for number in range(request.config.getoption("--kills")):
        folder, command = desk / str(number), (*train, f"hydra.run.dir={number}", "resume=auto")
        run = begun(sys.executable, "-m", "styletransfer", *command, env=one_thread)
        seen = chance.random() * steps
        until(lambda: steps_of(folder) >= seen or run.poll() is not None)  # noqa: B023
        time.sleep(chance.random() / 10)
        run.kill()
        run.communicate()
        assert status_of(*command) == 0
        ours, expected = files_in(folder), files_in("whole")
        assert ours.keys() == expected.keys()
        assert all(ours[name] == expected[name] for name in ("pastiche.png", "metrics.jsonl"))


@pytest.mark.parametrize(
    ("name", "number"), [("train", signal.SIGTERM), *(("mix", n) for n in STOPPING)]
)
def test_a_command_that_is_stopped(name, number, here, monkeypatch, capsys):
    def stopped(*args):
        with atomic(here / "half") as temporary:
            temporary.write_text("begun")
            press(number)
            press()
        pytest.fail("not reached")

    monkeypatch.setattr(commands()[name], "code", stopped)
    status, printed = call(capsys, run=partial(run_command, commands()[name]))
    assert (status, printed.err) == (128 + number, "error: interrupted\n")
    assert [path.read_text() for path in here.iterdir()] == ["begun"]
