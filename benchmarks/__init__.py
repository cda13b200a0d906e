"""Benchmarks and other measurements, which are not in the wheel; docs/speed.md lists commands.

`evaluations` compares time and memory with the simple program plain.py. Most other files are
scripts, whose first lines show the command.
"""

import importlib
from pathlib import Path

from styletransfer.cli.errors import one_line_errors

CONFIGS = Path(__file__).parent / "configs"


def start(name: str) -> None:
    """Run a command of commands.py; an error or Ctrl-C prints one line, even during imports."""
    with one_line_errors():
        from styletransfer.cli.hydrated import run_command

        run_command(getattr(importlib.import_module("benchmarks.commands"), name))
