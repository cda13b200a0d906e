"""A file through a style network: a picture, or a film frame by frame."""

import sys
from pathlib import Path

from tqdm.auto import tqdm

from styletransfer import films
from styletransfer.commands.apply.painter import Painter
from styletransfer.errors import UserError
from styletransfer.films.flow import check_flow, motion_between
from styletransfer.films.steady import Steady
from styletransfer.pictures import images
from styletransfer.system.memory import is_out_of_memory


def paint(painter: Painter, source: Path, target: Path) -> None:
    """Paint a film if `target` has the extension of one, otherwise a picture.

    Raises:
        UserError: it cannot be read, is too small or fits no memory, or `target` cannot be written.
        Stopped: a signal has come; what there is of a film stays, under the name of a partial one.
    """
    try:
        (paint_film if is_film(target) else paint_picture)(painter, source, target)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise UserError(f"{source} fits no memory; choose a smaller size or strip") from error


def is_film(target: Path) -> bool:
    """Tell whether a file of this name is written as a film."""
    return target.suffix.lower() in films.CODECS


def paint_picture(painter: Painter, source: Path, target: Path) -> None:
    """Paint a picture; its transparency is kept."""
    picture = images.read(source)
    size = painter.size(picture.size, source)
    picture = images.resize_picture(picture, max(size))
    content = images.fill_transparent(picture)
    images.write(target, painter.paint(content, painter.rows(size)), picture.alpha)


def paint_film(painter: Painter, source: Path, target: Path) -> None:
    """Paint a film, each frame by itself but for `steady`; its times and its sound are kept."""
    with films.Film(source) as film, films.FilmWriter(target, like=film) as writer:
        size = painter.size(film.size, source)
        rows = painter.rows(size)
        steady = Steady(painter.config.steady, motion_between)
        if steady.strength:
            check_flow(size)
        for frame in tqdm(
            film.frames(),
            total=film.count or None,
            unit="frame",
            dynamic_ncols=True,
            leave=None,
            disable=sys.stderr is None,
        ):
            content = images.resize(frame.image, size)
            painted = painter.paint(content, rows)
            writer.write(steady.mixed(content, painted), frame.time)
