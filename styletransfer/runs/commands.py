"""The commands for finished runs."""

from pathlib import Path

from styletransfer.runs.settings import InfoConfig, MixConfig
from styletransfer.settings.registry import command


@command
def info(config: InfoConfig, folder: Path) -> None:
    """Print how a picture was made."""
    from styletransfer.runs.info import main

    main(config, folder)


@command(repeatable=True)
def mix(config: MixConfig, folder: Path) -> None:
    """Mix a finished pastiche with its content."""
    from styletransfer.runs.mix import main

    main(config, folder)
