"""The command `film`, and the functions by which other rooms read films and single frames."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from styletransfer.films.formats import is_film
from styletransfer.films.settings import FilmConfig
from styletransfer.runs.carriers import Carrier
from styletransfer.settings.registry import FrameReader, command

if TYPE_CHECKING:
    from torch import Tensor


@command(repeatable=True)
def film(config: FilmConfig, folder: Path) -> None:
    """Paint a film by optimisation."""
    from styletransfer.films.command import main

    main(config, folder)


def film_recipe(path: Path) -> str:
    """Return the text of the recipe in a film: the film's comment, or ""."""
    from styletransfer.films.read import Film

    with Film(path) as film:
        return film.comment


def film_frame(path: str, place: str) -> "Tensor":
    """Return one frame (1, 3, H, W) of a film, by its number or its time; see `Film.frame`."""
    from styletransfer.films.read import Film

    with Film(path) as film:
        return film.frame(place).image


def film_frames(path: Path) -> Iterator["Tensor"]:
    """Yield the frames (1, 3, H, W) of a film."""
    from styletransfer.films.read import Film

    with Film(path) as film:
        yield from (frame.image for frame in film.frames())


FILM = Carrier(is_film, film_recipe, film_frames)
FRAME = FrameReader(film_frame)
