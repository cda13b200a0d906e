"""Print how a picture was made: `scripts/info.py PICTURE`."""

from pathlib import Path

from styletransfer.runs.metadata import lines_of
from styletransfer.settings.pictures import InfoConfig


def main(config: InfoConfig, folder: Path) -> None:
    """Print the recipe that a picture carries, a line for each key (UserError: it has none)."""
    print(*lines_of(Path(config.picture)), sep="\n")
