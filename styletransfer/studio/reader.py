"""The reader: a separate process that opens untrusted picture and film files for the server.

The process answers one request at a time, at low priority. It makes two JPEGs of each picture,
which the server sends as files.
"""

import asyncio
import multiprocessing
import os
import stat
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from PIL import Image

from styletransfer.errors import UserError
from styletransfer.films.formats import is_film
from styletransfer.networks.commands.apply import ApplyConfig
from styletransfer.settings import ASSETS, each
from styletransfer.studio.worker import CONTEXT, become_a_child
from styletransfer.system.files import atomic

PATIENCE = 120.0  # seconds after which a request fails and the process is killed
HASHES = "sha256 of "  # a recipe has the hashes of a key's input files under "sha256 of KEY"
QUALITY = 88  # JPEG quality of the pictures that the page shows, from 0 to 100
SIDES = (320, 2048)  # longer sides in pixels of the two JPEGs of each picture
# LOOK: longer side of a sketch in pixels. KNOWN: number of style images whose data for the style
# network (a `Painting`) are kept in memory.
LOOK, KNOWN = 512, 256
REMEMBERED = 16  # number of small photographs that are kept in memory
# OIL, STYLE_SIZE: the page's first style, and its longer side in pixels when a sketch reads it.
OIL, STYLE_SIZE = str(ASSETS / "style" / "oil.jpg"), ApplyConfig.style_size
# Niceness of the process, from 0 to 19: the runner has priority. With 10, the reader would get
# almost no CPU time while the runner works.
NICE = 5


class Reader:
    """A Reader calls functions of this module in a separate process, one after the other.

    Calls with `first` are made before waiting calls without it.
    """

    def __init__(self) -> None:
        self._pool = new_pool()
        # Calls without `first` take `_patient`, then `_process`; those with `first` take `_process`
        # alone. So a call with `first` waits for at most one call without it.
        self._process, self._patient = asyncio.Lock(), asyncio.Lock()

    def start(self) -> None:
        """Start the process, so that the first request does not wait for it."""
        threading.Thread(target=self._pool.submit, args=(int,), daemon=True).start()

    async def ask(self, function: Callable[..., Any], *arguments: Any, first: bool = False) -> Any:
        """Call a function in the process, and return its value.

        (UserError: the function raised one or lacked memory; the process ended or took too long.)
        """
        async with AsyncExitStack() as turn:
            for lock in [self._process] if first else [self._patient, self._process]:
                await turn.enter_async_context(lock)
            try:  # `submit` runs in a thread, because the first call waits for the process to start
                answer = await asyncio.to_thread(self._pool.submit, function, *arguments)
                return await asyncio.wait_for(asyncio.wrap_future(answer), PATIENCE)
            except MemoryError as error:
                raise UserError("the picture does not fit in memory; shrink it first") from error
            except BrokenExecutor as error:
                self._pool = new_pool()  # a broken pool would refuse the next request
                raise UserError("the process that reads pictures has ended; try again") from error
            except TimeoutError as error:
                kill(self._pool)
                said = "the picture takes too long to read; save it again in another program"
                raise UserError(said) from error

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
    # The first sketch needs this style, so it is read now; the result is cached.
    threading.Thread(target=_painting, args=(OIL, STYLE_SIZE, age_of(OIL)), daemon=True).start()


def _end_with_the_server() -> None:
    if (server := multiprocessing.parent_process()) is not None:
        server.join()
        os._exit(1)


def age_of(path: str | Path) -> int:
    """Return the time in ns when a file was last changed (UserError: it is gone)."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError as error:
        raise UserError(f"{path} is gone") from error


def copies_of(path: Path) -> list[Path]:
    """Return the paths of the two JPEGs of a picture, the small one first."""
    return [path.with_name(f".{path.name}.{side}.jpg") for side in SIDES]


def is_copied(path: Path) -> bool:
    """Return whether both JPEGs of a picture exist and are up to date (UserError: no picture)."""
    age = age_of(path)
    with suppress(OSError):
        found = [copy.lstat() for copy in copies_of(path)]
        return all(stat.S_ISREG(one.st_mode) and one.st_mtime_ns >= age for one in found)
    return False


def copy(path: Path) -> dict[str, int]:
    """Write two small JPEGs, see SIDES, of a picture or of a film's first frame, on white.

    Return its "width" and "height" in pixels and its number of "frames", 0 for a picture.
    (UserError: it cannot be read, or the JPEGs cannot be written.)
    """
    from styletransfer.films.read import Film
    from styletransfer.pictures import images
    from styletransfer.pictures.convert import small_picture
    from styletransfer.pictures.images import Picture

    frames = 0
    if is_film(path):
        with Film(path) as film:
            frames, picture = film.count, Picture(next(film.frames()).image, name=str(path))
    else:
        picture = images.read(path)
    height, width = picture.size
    image = small_picture(picture, SIDES[-1])
    for side, made in reversed([*zip(SIDES, copies_of(path), strict=True)]):
        image.thumbnail((side, side), Image.Resampling.LANCZOS)
        if made.is_symlink():  # the link is removed, because `atomic` would write to its target
            made.unlink()
        with atomic(made) as temporary:
            image.save(temporary, "JPEG", quality=QUALITY)
    return {"width": width, "height": height, "frames": frames}


def frame(path: str, place: str) -> bytes:
    """Return a frame of a film as a PNG; see `Film.frame` (UserError: there is none)."""
    from styletransfer.films.read import Film
    from styletransfer.pictures.convert import png, to_image

    with Film(path) as film:
        return png(to_image(film.frame(place).image))


def recipe(path: str) -> tuple[dict[str, Any], dict[str, list[str]]] | None:
    """Return two dicts from a picture by `train`: key -> setting, and key -> input files' SHA-256s.

    The result is None if the file carries no recipe of `train`.
    """
    from styletransfer.runs.recipe import carried, settings_in

    with suppress(UserError):
        told = carried(Path(path))
        # `settings_in` refuses the recipe of a steered run, so it gets only the entry "command".
        name, values = settings_in({"command": told["command"]})
        named = [key for key in told if key.startswith(HASHES)]
        hashes = {key.removeprefix(HASHES): told[key].split() for key in named}
        return (values, hashes) if name == "train" else None
    return None


def look(config: ApplyConfig, side: int) -> bytes:
    """Return a sketch as a JPEG: `apply` paints it with the network that can paint any style.

    Its longer side has at most `side` and `config.size` pixels. (UserError: a picture cannot be
    read, weights are wrong, or the photograph is too narrow.)
    """
    from styletransfer.networks.apply.painter import blend
    from styletransfer.networks.johnson import SMALLEST_SIDE
    from styletransfer.pictures.convert import jpeg, to_image

    styles, painter = list(each(config.style)), sketcher()
    side = min(side, config.size or side)
    content = photograph(config.input, age_of(config.input), side)
    if min(content.shape[2:]) < SMALLEST_SIDE:
        raise UserError("the photograph is too narrow for a sketch")
    paintings = [_painting(one, config.style_size, age_of(one)) for one in styles]
    painter.config, painter.blend = config, blend(config, styles, named=False)
    painter.paintings.choose(paintings)
    painter.paintings.strength = config.strength
    return jpeg(to_image(painter.paint(content)), QUALITY)


@lru_cache(REMEMBERED)
def photograph(path: str, age: int, side: int) -> Any:
    """Return the picture (1, 3, H, W) in a file, reduced to at most `side` pixels on each side.

    Later calls return the same tensor, so that `Paintings` computes the photograph's style once.
    For `age`, see `_painting`.
    """
    import torch

    from styletransfer.pictures.convert import as_picture

    file = Path(path)
    with Image.open(copies_of(file)[-1] if is_copied(file) else file) as image:
        small = image.convert("RGB")
    small.thumbnail((side, side), Image.Resampling.LANCZOS)
    return as_picture(small, path).rgb.contiguous(memory_format=torch.channels_last)


@lru_cache(REMEMBERED)
def has_margins(path: str, age: int) -> bool:
    """Return whether a border row or column is transparent; for `age`, see `_painting`."""
    from styletransfer.pictures import images
    from styletransfer.pictures.transparency import has_margins

    return has_margins(images.read(path))


@cache
def sketcher() -> Any:
    """Return the painter of sketches; its network can paint in any style."""
    from styletransfer.networks.apply.painter import Painter

    return Painter(ApplyConfig(network="any", style=OIL, device="cpu", precision="float32"))


@lru_cache(KNOWN)
def _painting(style: str, size: int, age: int) -> Any:
    """Return the `Painting` of a file, cached; `age`, its modification time, detects changes."""
    paintings = sketcher().paintings
    paintings.config = replace(paintings.config, style_size=size)
    return paintings.look_at(style)


def converted(path: str, extension: str, content: str, opacity: float) -> bytes:
    """Return a painted picture as the bytes of a file; `extension`, like ".tiff", is the format.

    If `opacity` is below 1, the picture is mixed with that in the file `content`, in sRGB, as on
    the page. The file then has no recipe, because a recipe does not tell the opacity.
    """
    from styletransfer.formats import xmp_packet
    from styletransfer.pictures import images

    picture, xmp = images.read(path), xmp_packet(Path(path))
    if opacity < 1:
        photo = images.resize(images.read(content).rgb, picture.size)
        picture, xmp = replace(picture, rgb=photo.lerp(picture.rgb, opacity)), b""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"pastiche{extension}"
        images.write(file, picture.rgb, picture.alpha, xmp=xmp)
        return file.read_bytes()
