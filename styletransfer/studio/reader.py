"""The process that opens picture files, whatever is in them, and how the server asks it.

It works on one file after the other, at low priority. A question is (number, name of a function,
arguments), its answer (number, value, None) or (number, None, message).
"""

import asyncio
import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from PIL import Image

from styletransfer.config import TrainConfig
from styletransfer.errors import UserError
from styletransfer.studio.access import RefusedError
from styletransfer.studio.worker import Worker, become_a_child

# Questions that may wait, as a page asks for a few pictures at once; and seconds for an answer.
MOST, PATIENCE = 64, 120.0
QUALITY = 88
# Longer side in pixels of what is shown at most, and how many pictures are kept at that size.
LARGEST, REMEMBERED = 2048, 16
_remembered: dict[tuple[int, ...], tuple[tuple[int, int], Image.Image]] = {}
# To whom others go first, as the painter does; at 10 next to nothing would be left.
NICE = 5


class Reader:
    """Asks the process about picture files."""

    def __init__(self) -> None:
        self.worker = Worker(main, self._hear, self._ended)
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._numbers = count()

    async def ask(self, name: str, *arguments: Any) -> Any:
        """Return what the function of that name below returns.

        Raises:
            UserError: from there, or the process has died of the picture.
            RefusedError: too many questions wait.
        """
        if len(self._asked) >= MOST:
            raise RefusedError("the studio is busy with other pictures; try again in a moment", 429)
        number, answer = next(self._numbers), asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        self.worker.send((number, name, arguments))
        try:
            return await asyncio.wait_for(answer, PATIENCE)
        except TimeoutError as error:
            self.worker.kill()
            raise UserError("the picture takes too long to read; save it anew") from error
        finally:
            self._asked.pop(number, None)

    def _hear(self, message: Any) -> None:
        number, value, problem = message
        answer = self._asked.get(number)
        if answer is None or answer.done():
            return
        if problem is None:
            answer.set_result(value)
        else:
            answer.set_exception(UserError(problem))

    def _ended(self, reason: str) -> None:
        """Fail what was asked: any of the pictures may have been the cause."""
        for answer in self._asked.values():
            if not answer.done():
                answer.set_exception(UserError(f"the process that reads pictures {reason}"))


def main(pipe: Connection) -> None:
    """Answer until the pipe ends."""
    become_a_child()
    with suppress(OSError, AttributeError):
        os.nice(NICE)
    import torch

    torch.set_num_threads(1)
    known = (measure, small, converted, look, check)
    functions: dict[str, Any] = {one.__name__: one for one in known}
    with suppress(EOFError, OSError):
        while (question := pipe.recv()) is not None:
            number, name, arguments = question
            value = problem = None
            try:
                value = functions[name](*arguments)
            except UserError as error:
                problem = str(error)
            except MemoryError:
                problem = "the picture does not fit in memory; shrink it first"
            pipe.send((number, value, problem))


def measure(path: str) -> tuple[int, int]:
    """Return the width and height of a picture that can be painted from."""
    return _opened(path)[0]


def small(path: str, side: int) -> bytes:
    """Return a picture as a JPEG at most `side` pixels long, on white where it is transparent."""
    from styletransfer.pictures.convert import jpeg

    image = _opened(path)[1].copy()
    image.thumbnail((side, side), Image.Resampling.LANCZOS)
    return jpeg(image, QUALITY)


def look(content: str, styles: Sequence[str], shares: Sequence[float]) -> bytes:
    """Return a first look at a photograph in some styles, as a JPEG."""
    from styletransfer.pictures.convert import jpeg
    from styletransfer.studio.look import paint

    return jpeg(paint(_opened(content)[1], styles, shares), QUALITY)


def check(config: TrainConfig) -> None:
    """Refuse settings that no run could have, as far as that is seen without painting."""
    from styletransfer.job.job import check_run
    from styletransfer.job.load import check_room, files_of
    from styletransfer.objective.criterion import Criterion

    check_run(config)
    Criterion.of(config.objective)
    files_of("style", config.style)
    width, height = measure(config.content)
    check_room(config, (height, width))


def converted(path: str, extension: str) -> bytes:
    """Return a picture in the format of an extension, such as ".tiff", at full size and depth."""
    from styletransfer.pictures import images

    picture = images.read(path)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"pastiche{extension}"
        images.write(file, picture.rgb, picture.alpha)
        return file.read_bytes()


def _opened(path: str) -> tuple[tuple[int, int], Image.Image]:
    """Return the size of a picture, and a version of it that is large enough to show.

    It is remembered by its file, which an upload keeps when it gets its name.
    """
    from styletransfer.pictures import images
    from styletransfer.pictures.convert import small_picture

    try:
        stat = os.stat(path)
    except OSError as error:
        raise UserError(f"{path} is gone") from error
    key = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
    if key not in _remembered:
        picture = images.read(path)
        height, width = picture.size
        if len(_remembered) == REMEMBERED:
            del _remembered[next(iter(_remembered))]
        _remembered[key] = (width, height), small_picture(picture, LARGEST)
    return _remembered[key]
