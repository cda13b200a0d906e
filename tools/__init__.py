"""Maintainers' tools, which the wheel leaves out: `python -m tools.NAME KEY=VALUE ...`.

`benchmark` compares time and memory with the plain loop, `judge` compares networks with VGG-19,
`leaderboard` compares programs by VGG-19, and `painters` draws style pictures.
"""

import importlib
from pathlib import Path

from styletransfer.cli import one_line_errors
from styletransfer.errors import UserError
from styletransfer.system import process_rank

CONFIGS = Path(__file__).parent / "configs"


def start(name: str) -> None:
    """Run `main` of tools/NAME/command.py; an error or Ctrl-C prints one line, also in imports."""
    with one_line_errors():
        if process_rank().world_size > 1:
            raise UserError(f"{name} works in one process; start it without torchrun")
        importlib.import_module(f"tools.{name}.command").main()
