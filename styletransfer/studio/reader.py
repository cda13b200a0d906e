"""The reader: a separate process that opens untrusted picture files for the server.

It reads one file after the other, at low priority. A question is a tuple (number, name of a
function, arguments); its answer is (number, value, None) or (number, None, UserError).
"""

import asyncio
import math
import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from PIL import Image

from styletransfer.errors import UserError
from styletransfer.pictures.formats import FILM_EXTENSIONS
from styletransfer.settings import ApplyConfig, TrainConfig
from styletransfer.studio.worker import Answers, Worker, become_a_child

# MOST: largest number of waiting questions; a page asks for a few pictures at once. PATIENCE:
# seconds after which a question fails and the process is killed.
MOST, PATIENCE = 64, 120.0
QUALITY = 88  # JPEG quality of the pictures that the page shows, from 0 to 100
# LARGEST: longer side in pixels of the decoded pictures kept in memory, and so of all pictures that
# the page shows. REMEMBERED: number of pictures kept.
LARGEST, REMEMBERED = 2048, 16
# LOOK: longer side of a first look in pixels. KNOWN: number of networks kept in memory, one for
# each set of style images.
LOOK, KNOWN = 512, 16
_remembered: dict[tuple[int, ...], tuple[tuple[int, int], Image.Image]] = {}
# GREY: longer side in pixels of the grey pictures from which `check` predicts memory. _prepared
# holds the last job that `check` prepared.
GREY = 256
_prepared: dict[str, Any] = {}
# Niceness of the process, from 0 to 19: the painter has priority. With 10, the reader would get
# almost no CPU time while the painter works.
NICE = 5


class Reader:
    """Sends questions about picture files to the reader's process, and returns the answers."""

    def __init__(self) -> None:
        self._answers = Answers(MOST, "the studio is busy with other pictures")
        said = "the process that reads pictures {}"
        self.worker = Worker(
            main,
            lambda message: self._answers.take(*message),
            lambda reason: self._answers.fail(said.format(reason)),
        )

    async def ask(self, name: str, *arguments: Any) -> Any:
        """Call a function of this module in the process, and return its value.

        Args:
            name: one of measure, small, converted, look, check and frames.
            arguments: the function's arguments.

        Raises:
            UserError: the function has raised it, or the process has ended or takes too long.
            RefusedError: too many questions wait.
        """
        try:
            asked = self._answers.ask(lambda number: self.worker.send((number, name, arguments)))
            return await asyncio.wait_for(asked, PATIENCE)
        except TimeoutError as error:
            self.worker.kill()
            raise UserError("the picture takes too long to read; save it anew") from error


def main(pipe: Connection) -> None:
    """Answer questions until the pipe ends."""
    become_a_child()
    with suppress(OSError, AttributeError):
        os.nice(NICE)
    import torch

    torch.set_num_threads(1)
    known = (measure, small, converted, look, check, frames)
    functions: dict[str, Any] = {one.__name__: one for one in known}
    with suppress(EOFError, OSError):
        while (question := pipe.recv()) is not None:
            number, name, arguments = question
            value = problem = None
            try:
                value = functions[name](*arguments)
            except UserError as error:
                problem = error
            except MemoryError:
                problem = UserError("the picture does not fit in memory; shrink it first")
            pipe.send((number, value, problem))


def measure(path: str) -> tuple[int, int]:
    """Return the width and height of a picture or film (UserError: it cannot be read)."""
    return _opened(path)[0]


def frames(path: str, config: ApplyConfig) -> int:
    """Return a film's number of frames, 0 if it is unknown (UserError: wrong settings)."""
    from styletransfer.commands.apply.painter import blend
    from styletransfer.films.read import Film

    blend(config, config.style, named=False)
    with Film(path) as film:
        return film.count


def small(path: str, side: int) -> bytes:
    """Return a picture, on white, as a JPEG whose sides are at most `side` pixels."""
    from styletransfer.pictures.convert import jpeg

    image = _opened(path)[1].copy()
    image.thumbnail((side, side), Image.Resampling.LANCZOS)
    return jpeg(image, QUALITY)


def look(content: str, styles: Sequence[str], shares: Sequence[float]) -> bytes:
    """Return a photograph as a JPEG, in the mean of some styles, by the network for any style.

    Args:
        content: path of the photograph.
        styles: paths of the style images.
        shares: the weight of each style; equal weights if empty.

    Raises:
        UserError: a style image cannot be read, or the photograph is too narrow.
    """
    from styletransfer.commands.apply.painter import blend
    from styletransfer.networks.johnson import SMALLEST_SIDE
    from styletransfer.pictures.convert import as_picture, jpeg, to_image

    small = _opened(content)[1].copy()
    small.thumbnail((LOOK, LOOK), Image.Resampling.LANCZOS)
    if min(small.size) < SMALLEST_SIDE:
        raise UserError("the photograph is too narrow for a first look")
    try:
        ages = [os.stat(path).st_mtime_ns for path in styles]
    except OSError as error:
        raise UserError(f"{error.filename} is gone") from error
    painter = _painter(tuple(styles), tuple(ages))
    shared = ApplyConfig(style_weights=list(shares))
    painter.blend = blend(shared, list(styles), named=False)
    return jpeg(to_image(painter.paint(as_picture(small, "content").rgb)), QUALITY)


@lru_cache(KNOWN)
def _painter(styles: tuple[str, ...], ages: tuple[int, ...]) -> Any:
    """Return the painter for style files; `ages`, their times in ns, tell changed files apart."""
    from styletransfer.commands.apply.painter import Painter

    return Painter(ApplyConfig(network="any", style=[*styles], device="cpu", precision="float32"))


def check(config: TrainConfig) -> dict[str, Any]:
    """Check a run's settings on small grey pictures, without a step (UserError: wrong settings).

    Returns:
        The pastiche's "width" and "height" in pixels; "memory", such as "1.2 GiB"; and "work",
        pixels times steps.
    """
    import torch

    from styletransfer.job import load, prepare
    from styletransfer.job.job import parse_tile, pastiche_size
    from styletransfer.job.memory import plan_memory
    from styletransfer.objective.criterion import Criterion
    from styletransfer.pictures.images import Picture
    from styletransfer.system.memory import free_bytes, readable

    parse_tile(config.tile)
    Criterion.of(config.objective)

    def grey(path: str) -> Picture:
        width, height = measure(path)
        factor = min(1.0, max(GREY / max(width, height), load.SMALLEST_SIDE / min(width, height)))
        shape = round(height * factor), round(width * factor)
        return Picture(torch.full((1, 3, *shape), 0.5), name=path)

    styles = [grey(path) for path in load.files_of("style", config.style)]
    given: dict[str, Any] = {"content": grey(config.content), "style": styles}
    if config.style_detail is not None:
        given["style_detail"] = grey(config.style_detail)
    width, height = measure(config.content)
    load.check_room(config, (height, width), len(styles) + (config.style_detail is not None))
    plain = replace(config, content_regions=None, region_styles={}, protect=None, init="content")
    job = prepare.prepare(plain, given, enlarge=False, like=_prepared.get("job"))
    _prepared["job"], free, peak, work = job, free_bytes(job.device), 0.0, 0.0
    for scale in job.scales:
        peak = max(peak, plan_memory(job, scale, free).bytes)
        work += scale.steps * math.prod(scale.size)
    height, width = pastiche_size(config, (height, width), config.size)
    return {"width": width, "height": height, "memory": readable(peak), "work": work}


def converted(path: str, extension: str) -> bytes:
    """Return a picture file in the format of an extension, such as ".tiff", at full size."""
    from styletransfer.pictures import images

    picture = images.read(path)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"pastiche{extension}"
        images.write(file, picture.rgb, picture.alpha)
        return file.read_bytes()


def _opened(path: str) -> tuple[tuple[int, int], Image.Image]:
    """Return (width, height) of a picture or a film, and a copy of at most LARGEST pixels.

    The last copies are kept by inode, size and time of the file, which do not change with its name.
    """
    from styletransfer.pictures import images
    from styletransfer.pictures.convert import small_picture

    try:
        stat = os.stat(path)
    except OSError as error:
        raise UserError(f"{path} is gone") from error
    key = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
    if key not in _remembered:
        picture = first_frame(path) if Path(path).suffix in FILM_EXTENSIONS else images.read(path)
        height, width = picture.size
        if len(_remembered) == REMEMBERED:
            del _remembered[next(iter(_remembered))]
        _remembered[key] = (width, height), small_picture(picture, LARGEST)
    return _remembered[key]


def first_frame(path: str) -> Any:
    """Return the first frame of a film."""
    from styletransfer.films.read import Film
    from styletransfer.pictures.images import Picture

    with Film(path) as film:
        return Picture(next(film.frames()).image, name=path)
