"""All that measures; the wheel leaves it out. docs/speed.md lists the commands.

`evaluations` compares time and memory with the plain loop, `judge` compares networks with VGG-19,
`leaderboard` compares programs by VGG-19; other files are scripts, each with its command on top.
"""

import importlib
from pathlib import Path

from styletransfer.cli import one_line_errors

CONFIGS = Path(__file__).parent / "configs"


def start(name: str, code: str) -> None:
    """Run `main` of the module `code` by Hydra with configs/NAME.yaml.

    An error or Ctrl-C prints one line, also while the module is imported.
    """
    with one_line_errors():
        from styletransfer.cli.hydrated import hydrated

        importlib.import_module(code)  # adds itself to TOOLS
        hydrated(name)(None)
