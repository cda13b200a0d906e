"""Distil VGG-19 into a small feature network: `python scripts/distill.py pictures=FOLDER`.

Interrupted, it goes on where it ended when the same command is given again. The result is used by
`python scripts/train.py features=bundled features.weights=outputs/distill/student.safetensors`.
"""

from pathlib import Path

from styletransfer.commands.distill.run import distill
from styletransfer.config import DistillConfig


def main(config: DistillConfig, folder: Path) -> None:
    """Train, and say where the weights are."""
    print(distill(config, folder))
