"""Maintainers' tools, which the wheel leaves out: `python -m tools.NAME KEY=VALUE ...`.

`benchmark` compares time and memory with the plain loop, `judge` compares networks with VGG-19,
`leaderboard` compares programs by VGG-19, and `painters` draws style pictures.
"""

import importlib
from pathlib import Path

from styletransfer.cli import one_line_errors

CONFIGS = Path(__file__).parent / "configs"


def start(name: str) -> None:
    """Run tools/NAME/command.py by Hydra; an error or Ctrl-C prints one line, also in imports."""
    with one_line_errors():
        from styletransfer.cli.hydrated import hydrated

        importlib.import_module(f"tools.{name}.command")  # adds itself to TOOLS
        hydrated(name)(None)
