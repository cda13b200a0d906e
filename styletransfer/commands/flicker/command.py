"""Measure how much painted films flicker: `scripts/flicker.py input=FILM painted=[A,B] style=S`.

E_warp (Lai et al. 2018) is the mean squared difference between a frame and an earlier one that the
motion of the input does not explain; that of the input itself is its floor. A blurred film flickers
little, too: therefore the style loss beside it.
"""

from pathlib import Path

from styletransfer.commands.flicker.run import flicker
from styletransfer.config import FlickerConfig


def main(config: FlickerConfig, folder: Path) -> None:
    """Print a table."""
    print(flicker(config))
