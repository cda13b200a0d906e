"""Children that stop with their parent. In processes of their own: signals are theirs."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

CHILD = """
import sys, time
from styletransfer.system.lifeline import following, is_gone, unblocked
from styletransfer.system.signals import Stopped, stop_on_signals
with stop_on_signals():
    try:
        with unblocked(), following(sys.argv[1]):
            print("ready", is_gone(sys.argv[1]), flush=True)
            time.sleep(600)
    except Stopped as stopped:
        print("stopped", stopped.status, is_gone(sys.argv[1]), flush=True)
        time.sleep(1)
        print("kept", flush=True)
"""
PARENT = f"""
import os, signal, subprocess, sys
from styletransfer.system.lifeline import Lifeline, is_gone
signal.signal(signal.SIGHUP, signal.SIG_IGN)
with Lifeline() as line:
    child = subprocess.Popen([sys.executable, "-c", {CHILD!r}, line.path])
    child.wait()
print("end", line.asked and line.asked.status, os.path.exists(line.path), is_gone(line.path))
print("blocked", sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])))
"""


@pytest.fixture
def parent(tmp_path: Path) -> subprocess.Popen[str]:
    """A parent whose child is at work."""
    process = subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready False\n"
    return process


def test_a_signal_to_the_parent_stops_the_child(parent: subprocess.Popen[str]) -> None:
    parent.send_signal(signal.SIGHUP)  # which it ignores
    parent.send_signal(signal.SIGTERM)
    printed, _ = parent.communicate(timeout=300)
    assert printed == "stopped 143 True\nkept\nend 143 False True\nblocked []\n"


def test_a_key_that_all_hear_stops_the_child_once(parent: subprocess.Popen[str]) -> None:
    os.killpg(parent.pid, signal.SIGINT)
    printed, _ = parent.communicate(timeout=300)
    assert printed.startswith("stopped 1")
    assert printed.endswith("end 130 False True\nblocked []\n")


def test_a_child_does_not_outlive_its_parent(parent: subprocess.Popen[str]) -> None:
    parent.kill()
    printed, _ = parent.communicate(timeout=300)  # until the child has closed it, too
    assert "kept" not in printed  # it may end anywhere once it is out of the body
