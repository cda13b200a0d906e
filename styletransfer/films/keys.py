"""Reads the setting `keys`: a folder of painted frames, whose names hold the frames' numbers."""

import re
from dataclasses import replace
from pathlib import Path

from styletransfer.errors import UserError
from styletransfer.films.commands.film import FilmConfig
from styletransfer.films.read import Film
from styletransfer.formats.folders import files_at, film_and_place
from styletransfer.job.sources import files_of
from styletransfer.pictures import images
from styletransfer.runs.claim import check_links

# Folder in a run's folder. It receives the frame that the user should paint by hand next.
TO_PAINT = "to_paint"


def with_keys(config: FilmConfig, film: Film) -> FilmConfig:
    """Return the settings with `style` and `style_source` in place of `keys`.

    They name the paintings in the folder `keys`, and the frames of `film` that these paint; both
    are empty lists if there is no painting. (UserError if `style` is also set, or if a painting's
    name has no number, the number of another painting, or a number that no frame has.)
    """
    if config.keys is None:
        return config
    if config.style_source is not None or config.style != FilmConfig.style:
        raise UserError("keys names the paintings; leave style and style_source out", "keys")
    painted: dict[int, str] = {}
    for path in files_at(config.keys) if Path(config.keys).exists() else []:
        if (number := last_number(path)) is None:
            problem = "has no number in its name; name it by the frame that it paints: 000120.png"
            raise UserError(f"{path} {problem}", "keys")
        if number in painted:
            both = f"{painted[number]} and {path} paint frame {number}"
            raise UserError(f"{both}; remove one of them", "keys")
        painted[number] = path
    frames = [_frame(film, *one) for one in painted.items()]
    return replace(config, keys=None, style=list(painted.values()), style_source=frames)


def last_number(path: str | Path) -> int | None:
    """Return the last number in a file's name without its extension, or None."""
    digits = re.findall("[0-9]+", Path(path).stem)
    return int(digits[-1]) if digits else None


def numbers_of(config: FilmConfig, film: Film) -> dict[int, int]:
    """Return index in `style_source` -> frame number, for its files that are frames of `film`."""
    found = {}
    for index, name in enumerate(files_of("style_source", config.style_source)):
        path, place = film_and_place(name)
        if place.isdecimal() and Path(path) == film.path:
            found[index] = int(place)
        elif Path(path) in film.paths:
            found[index] = film.paths.index(Path(path))
    return found


def write_frame(film: Film, number: int, folder: Path) -> Path:
    """Write frame `number` of a film into folder/TO_PAINT; its painting may have the same name.

    Return the path. (UserError if TO_PAINT is a link out of `folder`, or cannot be written.)
    """
    name = film.paths[number].stem if film.paths else f"{number:06d}"
    path = folder / TO_PAINT / f"{name}.png"
    check_links(folder, [str(path.relative_to(folder))])
    images.write(path, film.frame(str(number)).image)
    return path


def _frame(film: Film, number: int, painting: str) -> str:
    """Return the path, for `images.read`, of frame `number`, which the file `painting` paints."""
    if not film.paths:
        return f"{film.path}:{number}"
    found = [path for path in film.paths if last_number(path) == number]
    if len(found) != 1:
        problem = f"{film.path} has {len(found) or 'no'} frames with {number} last in their names"
        raise UserError(f"{painting} paints one frame, but {problem}; rename it", "keys")
    return str(found[0])
