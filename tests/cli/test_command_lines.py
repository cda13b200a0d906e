"""Any command line succeeds, or fails in one line and leaves nothing."""

import json
import subprocess
import sys

import pytest
from command_lines import TINY, command_line
from helpers import ROOT

from styletransfer.config.commands import COMMANDS

pytestmark = pytest.mark.slow


@pytest.mark.skipif(sys.platform == "win32", reason="forks a process for each line")
def test_command_lines(tmp_path, request):
    """`--lines=700` runs more of them."""
    count = request.config.getoption("--lines")
    command = [sys.executable, ROOT / "tests" / "run_lines.py", tmp_path, str(count)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-4000:]
    outcomes = json.loads(ended.stdout.splitlines()[-1])
    assert sum(outcomes.values()) == count
    assert outcomes["done"] > count / 20


def test_command_lines_are_of_every_command_and_the_same_each_time():
    lines = [command_line(0, index) for index in range(200)]
    assert lines == [command_line(0, index) for index in range(200)]
    assert set(COMMANDS) <= {line[0] for line in lines if line} & set(TINY)
