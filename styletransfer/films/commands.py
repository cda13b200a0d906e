"""The command of films."""

from pathlib import Path

from styletransfer.films.settings import FilmConfig
from styletransfer.settings.registry import command


@command(repeatable=True)
def film(config: FilmConfig, folder: Path) -> None:
    """Paint a film by optimisation."""
    from styletransfer.films.command import main

    main(config, folder)
