"""The command `train`, whose code is the file train.py beside this one."""

from pathlib import Path

from styletransfer.settings import TrainConfig
from styletransfer.settings.registry import command


@command(repeatable=True)
def train(config: TrainConfig, folder: Path) -> None:
    """Paint one picture in the style of another."""
    from styletransfer.train import main

    main(config, folder)
