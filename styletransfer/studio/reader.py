"""The reader: a separate process that opens untrusted picture and film files for the server.

The process reads one file after the other, at low priority.
"""

import asyncio
import multiprocessing
import os
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from PIL import Image

from styletransfer.errors import UserError
from styletransfer.films.formats import is_film
from styletransfer.networks.settings import ApplyConfig
from styletransfer.settings import ASSETS, TrainConfig
from styletransfer.studio.worker import CONTEXT, become_a_child
from styletransfer.system.allocator import return_freed_memory

# Seconds after which a request to the process fails and the process is killed.
PATIENCE = 120.0
HASHES = "sha256 of "  # with a key of a file after it, a key of a recipe
QUALITY = 88  # JPEG quality of the pictures that the page shows, from 0 to 100
# LARGEST: largest longer side in pixels of the decoded pictures in memory, and so of all pictures
# that the page shows. REMEMBERED: number of decoded pictures in memory.
LARGEST, REMEMBERED = 2048, 16
# LOOK: largest longer side in pixels of a quick preview (see `look`). KNOWN: number of style images
# whose data for the style network (a `Painting`) are kept in memory.
LOOK, KNOWN = 512, 256
# GREY: approximate longer side in pixels of the grey pictures with which `check` tries settings.
# _prepared holds the last job that `check` prepared; the next job reuses its extractor.
GREY = 256
_prepared: dict[str, Any] = {}
# Niceness of the process, from 0 to 19: the runner has priority. With 10, the reader would get
# almost no CPU time while the runner works.
NICE = 5


class Reader:
    """A Reader calls functions of this module in a separate process, one after the other."""

    def __init__(self) -> None:
        self._pool = new_pool()

    def start(self) -> None:
        """Start the process, so that the first request does not wait for it."""
        threading.Thread(target=self._pool.submit, args=(int,), daemon=True).start()

    async def ask(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of this module in the process, and return its value.

        Raises:
            UserError: the function has raised it, or the process has ended or takes too long.
        """
        pool = self._pool
        try:  # in a thread, because the first call waits for the process to start
            answer = await asyncio.to_thread(pool.submit, function, *arguments)
            return await asyncio.wait_for(asyncio.wrap_future(answer), PATIENCE)
        except MemoryError as error:
            raise UserError("the picture does not fit in memory; shrink it first") from error
        except BrokenExecutor as error:
            if self._pool is pool:  # of several failed requests, the first makes a new pool
                self._pool = new_pool()
            raise UserError("the process that reads pictures has ended; try again") from error
        except TimeoutError as error:
            kill(pool)
            raise UserError("the picture takes too long to read; save it anew") from error

    def close(self) -> None:
        """End the process."""
        kill(self._pool)
        self._pool.shutdown()


def new_pool() -> Executor:
    """Return an executor with one process, which starts when the first function is submitted."""
    return ProcessPoolExecutor(1, CONTEXT, _begin)


def kill(pool: Any) -> None:
    """Kill the process of a pool."""
    for process in list(pool._processes.values()):
        process.kill()


def _begin() -> None:
    """Set up the new process: low priority, one torch thread, and an exit when the server ends."""
    import torch

    become_a_child()
    threading.Thread(target=_end_with_the_server, daemon=True).start()
    with suppress(OSError, AttributeError):
        os.nice(NICE)
    torch.set_num_threads(1)
    threading.Thread(target=_look_at_bundled, daemon=True).start()


def _look_at_bundled() -> None:
    """Encode each bundled style for the style network, so that the first preview is quick."""
    for file in (ASSETS / "style").glob("*.jpg"):
        _painting(str(file), file.stat().st_mtime_ns)
    return_freed_memory()


def _end_with_the_server() -> None:
    if (server := multiprocessing.parent_process()) is not None:
        server.join()
        os._exit(1)


def measure(path: str) -> tuple[int, int]:
    """Return the width and height of a picture or film (UserError: it cannot be read)."""
    return _opened(path)[0]


def small(path: str, side: int) -> bytes:
    """Return a picture, on white, as a JPEG whose sides are at most `side` pixels."""
    from styletransfer.pictures.convert import jpeg

    image = _opened(path)[1].copy()
    image.thumbnail((side, side), Image.Resampling.LANCZOS)
    return jpeg(image, QUALITY)


def recipe(path: str) -> tuple[dict[str, Any], dict[str, list[str]]] | None:
    """Return the settings and the input files' SHA-256s, each by key, of a pastiche of `train`.

    None if the file carries no recipe of `train`.
    """
    from styletransfer.runs.recipe import carried, settings_in

    with suppress(UserError):
        told = carried(Path(path))
        name, values = settings_in({"command": told["command"]})  # leaves out "steered"
        hashes = {
            key.removeprefix(HASHES): each.split()
            for key, each in told.items()
            if key.startswith(HASHES)
        }
        return (values, hashes) if name == "train" else None
    return None


def look(content: str, styles: Sequence[str], shares: Sequence[float], side: int = LOOK) -> bytes:
    """Return a quick preview: a photograph painted by the style network for any style, as a JPEG.

    Args:
        content: path of the photograph.
        styles: paths of the style images.
        shares: the weight of each style; equal weights if empty.
        side: longer side in pixels, at most LOOK.

    Raises:
        UserError: a picture cannot be read, `shares` are wrong, or the photograph is too narrow.
    """
    from styletransfer.networks.apply.painter import blend
    from styletransfer.networks.johnson import SMALLEST_SIDE
    from styletransfer.pictures.convert import as_picture, jpeg, to_image

    small = _opened(content)[1].copy()
    small.thumbnail((min(side, LOOK),) * 2, Image.Resampling.LANCZOS)
    if min(small.size) < SMALLEST_SIDE:
        raise UserError("the photograph is too narrow for a first look")
    painter = _painter()
    try:
        painter.paintings.choose([_painting(path, os.stat(path).st_mtime_ns) for path in styles])
    except OSError as error:
        raise UserError(f"{error.filename} is gone") from error
    shared = ApplyConfig(style_weights=list(shares))
    painter.blend = blend(shared, list(styles), named=False)
    return jpeg(to_image(painter.paint(as_picture(small, "content").rgb)), QUALITY)


@cache
def _painter() -> Any:
    """Return the painter of quick previews, which uses the style network for any style."""
    from styletransfer.networks.apply.painter import Painter

    oil = str(ASSETS / "style" / "oil.jpg")
    return Painter(ApplyConfig(network="any", style=oil, device="cpu", precision="float32"))


@lru_cache(KNOWN)
def _painting(style: str, age: int) -> Any:
    """Return the `Painting` of a file, cached; `age`, its modification time, detects changes."""
    return _painter().paintings.look_at(style)


def check(config: TrainConfig, sizes: Mapping[str, tuple[int, int]]) -> dict[str, Any]:
    """Check a run's settings on small grey pictures, without a step (UserError: wrong settings).

    `sizes` maps the paths of content and styles to (width, height); these files are not read.

    Returns:
        The pastiche's "width" and "height" in pixels; "memory", such as "1.2 GiB"; and "work"
        of all steps, in pixels (see `guide.work`).
    """
    import torch

    from styletransfer.job.choices import Choices
    from styletransfer.job.memory import check_room, plan_memory
    from styletransfer.job.prepare import prepare
    from styletransfer.job.sources import SMALLEST_SIDE, files_of
    from styletransfer.pictures.images import Picture
    from styletransfer.studio import guide
    from styletransfer.system.devices import free_bytes, readable

    choices = Choices.of(config)

    def grey(path: str) -> Picture:
        width, height = sizes[path]
        factor = min(1.0, max(GREY / max(width, height), SMALLEST_SIDE / min(width, height)))
        shape = round(height * factor), round(width * factor)
        return Picture(torch.full((1, 3, *shape), 0.5), name=path)

    styles = [grey(path) for path in files_of("style", config.style)]
    given: dict[str, Any] = {"content": grey(config.content), "style": styles}
    width, height = sizes[config.content]
    check_room(choices, (height, width), len(styles) + (config.style_detail is not None))
    plain = replace(config, content_regions=None, region_styles={}, protect=None, init="content")
    job = prepare(plain, given, enlarge=False, like=_prepared.get("job"))
    _prepared["job"], free, peak, work = job, free_bytes(job.device), 0.0, 0.0
    for scale in job.scales:
        peak = max(peak, plan_memory(job, scale, free).bytes)
        work += scale.steps * guide.work(scale)
    height, width = choices.pyramid.pastiche((height, width))
    return {"width": width, "height": height, "memory": readable(peak), "work": work}


def converted(path: str, extension: str) -> bytes:
    """Return a picture file in the format of an extension, such as ".tiff", at full size."""
    from styletransfer.pictures import images
    from styletransfer.pictures.decode import xmp_packet

    picture = images.read(path)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"pastiche{extension}"
        images.write(file, picture.rgb, picture.alpha, xmp=xmp_packet(Path(path)))
        return file.read_bytes()


def _opened(path: str) -> tuple[tuple[int, int], Image.Image]:
    """Return the (width, height) of a picture or film, and a copy with sides up to LARGEST."""
    try:
        return _decoded(path, os.stat(path).st_mtime_ns)
    except OSError as error:
        raise UserError(f"{path} is gone") from error


@lru_cache(REMEMBERED)
def _decoded(path: str, age: int) -> tuple[tuple[int, int], Image.Image]:
    """Return the result of `_opened`, cached; `age`, the modification time, detects changes."""
    from styletransfer.films.read import Film
    from styletransfer.pictures import images
    from styletransfer.pictures.convert import small_picture
    from styletransfer.pictures.images import Picture

    if is_film(path):
        with Film(path) as film:
            picture = Picture(next(film.frames()).image, name=path)
    else:
        picture = images.read(path)
    height, width = picture.size
    return (width, height), small_picture(picture, LARGEST)
