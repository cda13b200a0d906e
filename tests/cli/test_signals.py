"""Every command ends by a signal in one line, with its status, and leaves nothing half-written."""

import os
import signal
import subprocess
import sys

import pytest
from helpers import ROOT

from styletransfer.cli import script
from styletransfer.cli.catalogue import module
from styletransfer.cli.errors import end_at_once, one_line_errors
from styletransfer.settings import SCHEMAS
from styletransfer.system.files import atomic
from styletransfer.system.signals import STOPPING, Stopped, interruptible

pytestmark = pytest.mark.usefixtures("signals")


def press(number=signal.SIGTERM):
    os.kill(os.getpid(), number)


@pytest.mark.slow
@pytest.mark.parametrize("attack", ["signal_runs", "limited_runs"])
def test_runs_that_are_stopped_or_have_little_left(attack, tmp_path, request):
    """Signals at random moments, and small limits; `--kills=600` makes 300 runs of each."""
    runs = request.config.getoption("--kills") // 2
    command = [sys.executable, str(ROOT / "tests" / f"{attack}.py"), str(tmp_path), str(runs)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{runs} runs, 0 with faults" in done.stdout


# One that Hydra runs, by each signal, and one that it does not.
@pytest.mark.parametrize(
    ("name", "number"), [*(("train", number) for number in STOPPING), ("gradcheck", signal.SIGTERM)]
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
        script(name)(["hydra.run.dir=run"] if name in SCHEMAS else [])
    assert exit.value.code == 128 + number
    assert capsys.readouterr().err == "error: interrupted\n"
    assert (tmp_path / "half").read_text() == "begun"
    assert not list(tmp_path.glob("*.tmp"))


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
