"""The command of the studio."""

from pathlib import Path

from styletransfer.settings.registry import command
from styletransfer.studio.settings import StudioConfig


@command(torch=False)  # the server imports none
def studio(config: StudioConfig, folder: Path) -> None:
    """Paint on a page, and change settings meanwhile."""
    from styletransfer.studio.command import main

    main(config, folder)
