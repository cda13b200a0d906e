"""Paint with a style network: `scripts/apply.py network=FILE input=PHOTO output=FILE`.

`input` may be a film, then `output` is one as well; or a folder, then `output` is one with the same
structure, and run again, it paints what is missing or older than its picture or the network.
"""

from pathlib import Path

from styletransfer.commands.apply.run import apply
from styletransfer.config import ApplyConfig


def main(config: ApplyConfig, folder: Path) -> None:
    """Paint, and say where the pastiches are."""
    print(apply(config))
