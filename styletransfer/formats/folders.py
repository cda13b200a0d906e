"""Lists the picture formats that can be read, and the pictures in a folder; parses frame names.

This module imports no torch.
"""

import logging
import os
import re
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from PIL import Image

from styletransfer.errors import imported
from styletransfer.settings.schemas import on_disk

logger = logging.getLogger(__name__)

# Pillow's names of the picture formats that are read. HEIF needs Pillow's plugin pillow-heif.
FORMATS = ("JPEG", "PNG", "WEBP", "TIFF", "BMP", "GIF", "AVIF", "HEIF")
# Pattern of the name of a film's frame, by its number (film.mp4:120) or its time (film.mp4:4.8s).
FRAME = re.compile(r"(.+):([0-9]{1,9}|(?=\.?[0-9])[0-9]{0,9}\.?[0-9]{0,9}s)", re.DOTALL)


def film_and_place(name: str | os.PathLike[str]) -> tuple[str, str]:
    """Return ("film.mp4", "120") for "film.mp4:120", which names a frame of a film.

    Return (name, "") for all other names, and for a file whose own name is "film.mp4:120".
    """
    name = os.fspath(name)
    found = FRAME.fullmatch(name)
    if found and not os.path.lexists(name) and os.path.isfile(film := on_disk(found[1])):
        return film, found[2]
    return name, ""


@cache
def picture_formats() -> tuple[str, ...]:
    """Return the names in FORMATS that Pillow and its installed plugins can read."""
    with suppress(ImportError):
        import pillow_heif

        pillow_heif.register_heif_opener(thumbnails=False)
    Image.init()
    return tuple(name for name in FORMATS if name in Image.OPEN)


def imagecodecs(problem: str) -> Any:
    """Import imagecodecs; if it is not installed, raise a UserError that begins with `problem`."""
    return imported("imagecodecs", f"{problem}, or", "tiff")


@cache
def picture_extensions() -> tuple[str, ...]:
    """Return the extensions of the formats that can be read, such as ".jpg", in lower case."""
    formats = picture_formats()
    known = Image.registered_extensions().items()
    return tuple(sorted(extension for extension, name in known if name in formats))


def in_folder(name: str | os.PathLike[str]) -> list[str]:
    """Return the paths of the pictures in a folder, in the order of their names.

    Hidden files are skipped, such as ._a.jpg, which macOS writes beside a.jpg. Files with other
    extensions are also skipped, and a warning names them.
    """
    files = sorted(path for path in Path(name).iterdir() if not path.is_dir())
    files = [path for path in files if not path.name.startswith(".")]
    pictures = [path for path in files if path.suffix.lower() in picture_extensions()]
    warn_of_others(str(name), tuple(path.name for path in files if path not in pictures))
    return list(map(str, pictures))


@cache  # a command may list a folder several times, but should warn only once
def warn_of_others(folder: str, others: tuple[str, ...]) -> None:
    """Log a warning that names up to five skipped files of a folder."""
    rest = f" and {len(others) - 5} more" if others[5:] else ""
    if others:
        logger.warning("%s: passed over %s%s", folder, ", ".join(others[:5]), rest)


def files_at(name: str) -> list[str]:
    """Return the paths of the pictures if `name` is a folder, otherwise [name]."""
    return in_folder(name) if os.path.isdir(name) else [name]
