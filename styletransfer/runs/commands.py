"""The commands for finished runs."""

from pathlib import Path

from styletransfer.runs.settings import GalleryConfig, InfoConfig, MixConfig
from styletransfer.settings.registry import command


@command
def gallery(config: GalleryConfig, folder: Path) -> None:
    """Show runs side by side, to choose from."""
    from styletransfer.runs.gallery.command import main

    main(config, folder)


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
