"""Every command ends by a signal in one line, with its status, and leaves nothing half-written."""

import os
import signal
import subprocess
import sys

import pytest
from helpers import ROOT

from styletransfer.cli import module, script
from styletransfer.cli.errors import end_at_once, one_line_errors
from styletransfer.system.files import atomic
from styletransfer.system.signals import STOPPING, Stopped, interruptible

pytestmark = pytest.mark.usefixtures("signals")


def press(number=signal.SIGTERM):
    os.kill(os.getpid(), number)


@pytest.mark.slow
@pytest.mark.parametrize("attack", ["signal_runs.py", "limited_runs.py"])
def test_runs_that_are_stopped_or_starved_at_random(attack, tmp_path, request):
    """`--kills=600` makes 300."""
    runs = request.config.getoption("--kills") // 2
    command = [sys.executable, str(ROOT / "tests" / attack), str(tmp_path), str(runs)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{runs} runs, 0 with faults" in done.stdout


# By Hydra, and by itself.
@pytest.mark.parametrize(
    ("name", "number"), [("train", signal.SIGTERM), *(("gradcheck", n) for n in STOPPING)]
)
def test_a_command_that_is_stopped(name, number, tmp_path, monkeypatch, capsys):
    def stopped(*args):
        with atomic(tmp_path / "half") as temporary:
            temporary.write_text("begun")
            press(number)
            press()
        pytest.fail("not reached")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(f"{module(name)}.main", stopped)
    with pytest.raises(SystemExit) as exit:
        script(name)([])
    assert (exit.value.code, capsys.readouterr().err) == (128 + number, "error: interrupted\n")
    assert [path.name for path in tmp_path.iterdir()] == ["half"]
    assert (tmp_path / "half").read_text() == "begun"


def test_a_second_signal_does_not_break_the_last_line(capsys):
    def pressed_twice():
        try:
            with interruptible():
                press(signal.SIGINT)
        finally:
            press()

    with pytest.raises(SystemExit) as exit, one_line_errors():
        pressed_twice()
    assert (exit.value.code, capsys.readouterr().err) == (130, "error: interrupted\n")


def test_a_signal_that_was_dropped_is_told_at_the_end(capsys):
    class Dropping:
        def __del__(self):
            with pytest.raises(Stopped):  # as Python drops it
                press(signal.SIGHUP)

    def work():
        with interruptible():
            Dropping()
        print("done")

    with pytest.raises(SystemExit) as exit, one_line_errors():
        work()
    assert exit.value.code == 129
    assert capsys.readouterr() == ("done\n", "error: interrupted\n")


def test_ctrl_c_while_python_shuts_down():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    end_at_once()
    assert signal.getsignal(signal.SIGINT) == signal.SIG_DFL
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_at_once()
    assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
