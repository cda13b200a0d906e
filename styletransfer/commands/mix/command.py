"""Mix a finished pastiche with its content: `scripts/mix.py RUN strength=0.6 output=y.png`.

Nothing is painted again: RUN is the folder of a run of `train`, which keeps both pictures.
"""

from pathlib import Path

from styletransfer.commands.mix.run import mix
from styletransfer.config import MixConfig


def main(config: MixConfig, folder: Path) -> None:
    """Mix, and say where the picture is; `folder`, a place for new runs, stays as it is."""
    print(mix(config))
