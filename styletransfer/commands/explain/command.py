"""Explain where the gradient goes: `python scripts/explain.py loss_mode=fake_backward`.

Takes the same keys as `scripts/train.py`, watches one evaluation under each loss mode, prints the
graph of the chosen one as a tree and writes `explain.html`, a page that a browser opens offline,
with all three side by side.
"""

from pathlib import Path

from rich.console import Console

from styletransfer.commands.explain.run import explain
from styletransfer.config import TrainConfig
from styletransfer.errors import UserError


def main(config: TrainConfig, folder: Path) -> None:
    """Watch one evaluation per loss mode and say where the page is.

    Raises:
        UserError: bad input.
    """
    if config.dry_run:
        raise UserError("explain has no dry run; leave dry_run=true out")
    if config.resume is not None:  # its folder is that of another run
        raise UserError(f"explain does not go on with a run; leave resume={config.resume} out")
    explanation = explain(config, folder)
    console = Console()
    for tree in explanation.trees():
        console.print(tree)
    print(explanation.page)
