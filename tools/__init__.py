"""What maintainers do once a year, outside the wheel: `python -m tools.NAME KEY=VALUE ...`.

`benchmark` measures against the plain loop, `judge` says how good networks are, and `painters`
draws style pictures.
"""

import importlib
from pathlib import Path

from styletransfer.cli.errors import one_line_errors
from styletransfer.errors import UserError
from styletransfer.system.process import place

CONFIGS = Path(__file__).parent / "configs"


def start(name: str) -> None:
    """Run the `main` of tools/NAME/command.py, imported where Ctrl-C ends in one line."""
    with one_line_errors():
        if place().count > 1:
            raise UserError(f"{name} works in one process; start it without torchrun")
        importlib.import_module(f"tools.{name}.command").main()
