"""The process that opens picture files, whatever is in them: one after the other, at low priority.

It is asked (number, name of a function, arguments) and answers (number, value, None), or (number,
None, message).
"""

import io
import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from PIL import Image

from styletransfer.errors import UserError
from styletransfer.studio.child import become_a_child

QUALITY = 88
# Longer side in pixels of what is shown at most, and how many pictures are kept at that size.
LARGEST, KEPT = 2048, 16
# To whom others go first, as the painter does; at 10 next to nothing would be left.
NICE = 5


def main(pipe: Connection) -> None:
    """Answer until the pipe ends."""
    become_a_child()
    with suppress(OSError, AttributeError):
        os.nice(NICE)
    import torch

    torch.set_num_threads(1)
    functions = {"measure": measure, "small": small, "converted": converted}
    with suppress(EOFError, OSError):
        while (question := pipe.recv()) is not None:
            number, name, arguments = question
            pipe.send((number, *_answer(functions[name], arguments)))


def _answer(function: Any, arguments: tuple[Any, ...]) -> tuple[Any, str | None]:
    try:
        return function(*arguments), None
    except UserError as error:
        return None, str(error)
    except MemoryError:
        return None, "the picture does not fit in memory; shrink it first"


@dataclass(frozen=True)
class _File:
    """A picture file, the same whatever it is called."""

    identity: tuple[int, int, int]
    path: str = field(compare=False)


def measure(path: str) -> tuple[int, int]:
    """Return the width and height of a picture that can be painted from.

    Raises:
        UserError: it cannot be read.
    """
    return _opened(_file(path))[0]


def small(path: str, side: int) -> bytes:
    """Return a picture as a JPEG at most `side` pixels long, on white where it is transparent.

    Raises:
        UserError: it cannot be read.
    """
    image = _opened(_file(path))[1].copy()
    image.thumbnail((side, side), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=QUALITY)
    return buffer.getvalue()


def _file(path: str) -> _File:
    """Name a file by what stays when it is given another name.

    Raises:
        UserError: it is gone.
    """
    try:
        found = os.stat(path)
    except OSError as error:
        raise UserError(f"{path} is gone") from error
    return _File((found.st_ino, found.st_size, found.st_mtime_ns), path)


@lru_cache(KEPT)
def _opened(file: _File) -> tuple[tuple[int, int], Image.Image]:
    """Return the width and height of a picture, and a version of it that is large enough to show.

    Raises:
        UserError: it cannot be read.
    """
    from styletransfer.pictures import images
    from styletransfer.pictures.convert import small_picture

    picture = images.read(file.path)
    height, width = picture.size
    return (width, height), small_picture(picture, LARGEST)


def converted(path: str, extension: str) -> bytes:
    """Return a picture in the format of an extension, such as ".tiff", at full size and depth.

    Raises:
        UserError: it cannot be read, or that format cannot hold it.
    """
    from styletransfer.pictures import images

    picture = images.read(path)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"pastiche{extension}"
        images.write(file, picture.rgb, picture.alpha)
        return file.read_bytes()
