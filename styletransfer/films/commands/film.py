"""The command `film`, and the functions by which other packages read films and frames."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from styletransfer.films.formats import is_film
from styletransfer.runs.carriers import Carrier
from styletransfer.settings import MISSING, StyleTransferConfig, number, path
from styletransfer.settings.registry import FrameReader, command

if TYPE_CHECKING:
    from torch import Tensor

# With these settings, no frame starts from the previous painted frame, so `frame_steps` and
# `temporal_weight` have no effect.
NO_TIME = "with independent=true or style_source or keys"


@dataclass
class FilmConfig(StyleTransferConfig):
    """These are the settings of `scripts/film.py`, which paints a film by optimisation."""

    content: str = path(MISSING)
    """Path of a film in any container that FFmpeg reads, of an animated picture, or of a folder of
    frames."""
    keys: str | None = path(None, paired=True)
    """Folder of painted frames, instead of style and style_source: the last number in a painting's
    name is that of the frame that it paints, counted from 0. Where content is a folder of frames,
    it is the number in the frame's own name."""
    fps: float = number(25.0, "(0, 1000]")
    """Frames per second, for a folder of frames."""
    output: str | None = path(None, written=True)
    """Path of the painted film; the extension chooses the format. Default: in the run folder."""
    recipe: bool = True
    """Write into the film how it was made, as `train` does for pictures."""
    frame_steps: int = number(30, "[1, inf)", idle=NO_TIME)
    """Optimiser steps of each frame; the first frame, and the first after a cut, take `steps`."""
    temporal_weight: float = number(10.0, "[0, 1e6]", idle=NO_TIME)
    """Number by which the temporal loss of Ruder et al. 2016 is multiplied; 0 for none. This loss
    keeps a painted frame near the previous painted frame, warped by the motion."""
    independent: bool = False
    """Paint every frame as a separate picture, for comparison; the film then flickers."""


@command(repeatable=True)
def film(config: FilmConfig, folder: Path) -> None:
    """Paint a film by optimisation."""
    from styletransfer.films.film_run import paint_film

    paint_film(config, folder)


def film_recipe(path: Path) -> str:
    """Return a film's recipe (how it was made): the comment in its metadata, or ""."""
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
