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
import time
from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from PIL import Image

from styletransfer.errors import UserError
from styletransfer.films.formats import is_film
from styletransfer.networks.settings import ApplyConfig
from styletransfer.settings import ASSETS, TrainConfig, each
from styletransfer.studio.controls import SOURCE
from styletransfer.studio.worker import CONTEXT, become_a_child
from styletransfer.system.files import atomic

# Seconds after which a request to the process fails and the process is killed.
PATIENCE = 120.0
HASHES = "sha256 of "  # a recipe has the hashes of a key's input files under "sha256 of KEY"
QUALITY = 88  # JPEG quality of the pictures that the page shows, from 0 to 100
# Longer sides in pixels of the two JPEGs of each picture.
SIDES = (320, 2048)
# LOOK: longer side of a sketch in pixels. KNOWN: number of style images whose data for the style
# network (a `Painting`) are kept in memory.
LOOK, KNOWN = 512, 256
# TRIAL, TRIAL_STEPS: longer side in pixels, and number of steps, of the small picture of a look.
TRIAL, TRIAL_STEPS = 112, 15
REMEMBERED = 16  # number of small photographs that are kept in memory
# OIL, STYLE_SIZE: the page's first style, and the size in pixels at which a sketch looks at it.
OIL, STYLE_SIZE = str(ASSETS / "style" / "oil.jpg"), ApplyConfig.style_size
# GREY: approximate longer side in pixels of the grey pictures with which `check` tries settings.
# _prepared holds the last job that `check` prepared; the next job reuses its extractor.
GREY = 256
_prepared: dict[str, Any] = {}
# Time of the search of paired painting, as a number of steps at the same size.
SEARCH = 12
# Time that a frame of a film takes, as a multiple of the time that `Painter.paint` takes for it.
FILM_TIME = 2.0
# Niceness of the process, from 0 to 19: the runner has priority. With 10, the reader would get
# almost no CPU time while the runner works.
NICE = 5


class Reader:
    """A Reader calls functions of this module in a separate process, one after the other.

    Calls with `first` overtake those without.
    """

    def __init__(self) -> None:
        self._pool = new_pool()
        # A call without `first` needs both locks. So a call with `first` waits for one at most.
        self._process, self._patient = asyncio.Lock(), asyncio.Lock()

    def start(self) -> None:
        """Start the process, so that the first request does not wait for it."""
        threading.Thread(target=self._pool.submit, args=(int,), daemon=True).start()

    async def ask(self, function: Callable[..., Any], *arguments: Any, first: bool = False) -> Any:
        """Call a function of this module in the process, and return its value.

        Raises:
            UserError: the function raised one or lacked memory; the process ended or took too long.
        """
        async with AsyncExitStack() as turn:
            for lock in [self._process] if first else [self._patient, self._process]:
                await turn.enter_async_context(lock)
            return await self._answer(function, *arguments)

    async def _answer(self, function: Callable[..., Any], *arguments: Any) -> Any:
        pool = self._pool
        try:  # in a thread, because the first call waits for the process to start
            answer = await asyncio.to_thread(pool.submit, function, *arguments)
            return await asyncio.wait_for(asyncio.wrap_future(answer), PATIENCE)
        except MemoryError as error:
            raise UserError("the picture does not fit in memory; shrink it first") from error
        except BrokenExecutor as error:
            self._pool = new_pool()  # for the next request
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
    # So that the first sketch is quick.
    threading.Thread(target=_painting, args=(OIL, STYLE_SIZE, _age(OIL)), daemon=True).start()


def _end_with_the_server() -> None:
    if (server := multiprocessing.parent_process()) is not None:
        server.join()
        os._exit(1)


def _age(path: str | Path) -> int:
    """Return the time in ns when a file was last changed (UserError: it is gone)."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError as error:
        raise UserError(f"{path} is gone") from error


def copy_of(path: Path, side: int) -> Path:
    """Return the path of a picture's small JPEG if `side` is at most SIDES[0], else the large."""
    size = next((size for size in SIDES if size >= side), SIDES[-1])
    return path.with_name(f".{path.name}.{size}.jpg")


def copies_of(path: Path) -> list[Path]:
    """Return the paths of the two JPEGs of a picture."""
    return [copy_of(path, side) for side in SIDES]


def is_copied(path: Path) -> bool:
    """Return whether a picture has both JPEGs, none older than it (UserError: it is gone)."""
    age = _age(path)
    with suppress(OSError):
        found = [copy.lstat() for copy in copies_of(path)]
        return all(stat.S_ISREG(one.st_mode) and one.st_mtime_ns >= age for one in found)
    return False


def copy(path: Path) -> dict[str, int]:
    """Write two JPEGs of a picture or of a film's first frame, on white, with sides up to SIDES.

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
    for side in reversed(SIDES):
        image.thumbnail((side, side), Image.Resampling.LANCZOS)
        made = copy_of(path, side)
        if made.is_symlink():  # `atomic` would write to the link's target
            made.unlink()
        with atomic(made) as temporary:
            image.save(temporary, "JPEG", quality=QUALITY)
    return {"width": width, "height": height, "frames": frames}


def recipe(path: str) -> tuple[dict[str, Any], dict[str, list[str]]] | None:
    """Return the settings and the input files' SHA-256s, each by key, of a pastiche of `train`.

    None if the file carries no recipe of `train`.
    """
    from styletransfer.runs.recipe import carried, settings_in

    with suppress(UserError):
        told = carried(Path(path))
        name, values = settings_in({"command": told["command"]})  # also if "steered"
        hashes = {
            key.removeprefix(HASHES): each.split()
            for key, each in told.items()
            if key.startswith(HASHES)
        }
        return (values, hashes) if name == "train" else None
    return None


def look(config: ApplyConfig, side: int = LOOK) -> bytes:
    """Return a sketch, as a JPEG: the pastiche of `apply` with the network for any style.

    Its longer side has at most `side`, LOOK and `config.size` pixels. (UserError: a picture cannot
    be read, weights are wrong, or the photograph is too narrow.)
    """
    from styletransfer.networks.apply.painter import blend
    from styletransfer.networks.johnson import SMALLEST_SIDE
    from styletransfer.pictures.convert import jpeg, to_image

    styles, painter = list(each(config.style)), _painter()
    side = min(side, LOOK, config.size or LOOK)
    content = _photograph(config.input, _age(config.input), side)
    if min(content.shape[2:]) < SMALLEST_SIDE:
        raise UserError("the photograph is too narrow for a sketch")
    paintings = [_painting(one, config.style_size, _age(one)) for one in styles]
    painter.config, painter.blend = config, blend(config, styles, named=False)
    painter.paintings.choose(paintings)
    painter.paintings.strength = config.strength
    return jpeg(to_image(painter.paint(content)), QUALITY)


def trial(config: TrainConfig) -> bytes:
    """Return a small pastiche of `train` after few steps, as a JPEG, to compare looks.

    (UserError: a picture cannot be read, or a setting is wrong.)
    """
    from styletransfer.job.prepare import prepare
    from styletransfer.optimize.run import Run
    from styletransfer.pictures.convert import jpeg, to_image
    from styletransfer.pictures.images import Picture

    photo = _photograph(config.content, _age(config.content), SIDES[0])
    small = replace(config, size=TRIAL, steps=TRIAL_STEPS, init="content", output=None)
    given: dict[str, Any] = {"content": Picture(photo, name=config.content)}
    run = Run(prepare(small, given, like=_prepared.get("job")))
    return jpeg(to_image(run.complete().picture), QUALITY)


@lru_cache(REMEMBERED)
def _photograph(path: str, age: int, side: int) -> Any:
    """Return the picture of a file (1, 3, H, W), with sides up to `side`; `age`: see `_painting`.

    The same tensor is returned again, so that `Paintings` computes the photograph's style once.
    """
    import torch

    from styletransfer.pictures.convert import as_picture

    file = Path(path)
    with Image.open(copy_of(file, SIDES[-1]) if is_copied(file) else file) as image:
        small = image.convert("RGB")
    small.thumbnail((side, side), Image.Resampling.LANCZOS)
    return as_picture(small, path).rgb.contiguous(memory_format=torch.channels_last)


@lru_cache(REMEMBERED)
def _has_margins(path: str, age: int) -> bool:
    """Return whether a border row or column is transparent; `age`: see `_painting`."""
    from styletransfer.pictures import images
    from styletransfer.pictures.transparency import has_margins

    return has_margins(images.read(path))


@cache
def _painter() -> Any:
    """Return the painter of sketches, which uses the style network for any style."""
    from styletransfer.networks.apply.painter import Painter

    return Painter(ApplyConfig(network="any", style=OIL, device="cpu", precision="float32"))


@lru_cache(KNOWN)
def _painting(style: str, size: int, age: int) -> Any:
    """Return the `Painting` of a file, cached; `age`, its modification time, detects changes."""
    paintings = _painter().paintings
    paintings.config = replace(paintings.config, style_size=size)
    return paintings.look_at(style)


def check(config: TrainConfig, sizes: Mapping[str, tuple[int, int]]) -> dict[str, Any]:
    """Check a run's settings on small grey pictures, without a step (UserError: wrong settings).

    `sizes` maps the paths in `content`, `style` and `style_source` to (width, height). Of these
    files, only the photograph `style_source` and its painting are read. Files of regions, the mask
    and `style_detail` are read, too.

    Returns:
        The pastiche's "width" and "height" in pixels; "memory", such as "1.2 GiB"; and "work", the
        sum of `guide.work` over all steps. With `style_source`, "work" includes the search, and
        "warning" is a line, or None if photograph and painting fit.
    """
    import torch

    from styletransfer.job.choices import Choices
    from styletransfer.job.memory import check_room, plan_memory
    from styletransfer.job.prepare import prepare
    from styletransfer.job.sources import files_of
    from styletransfer.objective.paired import fits
    from styletransfer.pictures.images import Picture
    from styletransfer.studio import guide
    from styletransfer.studio.pairs import UNLIKE, check_pair
    from styletransfer.system.devices import free_bytes, readable

    choices = Choices.of(config)

    def grey(path: str, level: float = 0.5) -> Picture:
        return Picture(torch.full((1, 3, *_small_size(*sizes[path])), level), name=path)

    paths, source = files_of("style", config.style), config.style_source
    styles = [grey(path) for path in paths]
    given: dict[str, Any] = {"content": grey(config.content), "style": styles}
    if source is not None:
        check_pair(source, paths[0], sizes)
        if _has_margins(paths[0], _age(paths[0])):
            raise UserError(
                "the style has transparent margins: crop it, and this photograph alike", SOURCE
            )
        given[SOURCE] = [grey(paths[0], level=0.25)]
    width, height = sizes[config.content]
    check_room(choices, (height, width), len(styles) + (config.style_detail is not None))
    job = prepare(replace(config, init="content"), given, enlarge=False, like=_prepared.get("job"))
    _prepared["job"], free, peak, work, told = job, free_bytes(job.device), 0.0, 0.0, {}
    if source is not None:
        seen = [_photograph(one, _age(one), GREY) for one in (source, paths[0])]
        told["warning"] = None if fits(job.extractor, *seen) else UNLIKE
        work += SEARCH * guide.work(job.scales[-1])
    for scale in job.scales:
        peak = max(peak, plan_memory(job, scale, free).bytes)
        work += scale.steps * guide.work(scale)
    height, width = choices.pyramid.pastiche((height, width))
    return {"width": width, "height": height, "memory": readable(peak), "work": work} | told


def _small_size(width: int, height: int) -> tuple[int, int]:
    """Return the (height, width) of a grey picture, with nearly the aspect ratio of a picture.

    The longer side is near GREY pixels. Label pictures and masks are read at their own size, and
    must have the aspect ratio of the grey picture. So the size is chosen, among some sizes, whose
    sides are nearest to whole numbers of pixels.
    """
    from styletransfer.job.sources import SMALLEST_SIDE

    def rounding(factor: float) -> float:
        return max(abs(side * factor - round(side * factor)) for side in (width, height))

    least = max(GREY / max(width, height), SMALLEST_SIDE / min(width, height))
    if least >= 1:
        return height, width
    factor = min((least * (1 + n / 100) for n in range(20)), key=rounding)
    return round(height * factor), round(width * factor)


def check_film(config: ApplyConfig, size: tuple[int, int]) -> dict[str, Any]:
    """Check the settings of a sketch, or of a film with frames of (width, height) `size`.

    Return the same as `check`; "work" is the number of a frame's pixels. Also return "pace", the
    estimated seconds per pixel on this machine. (UserError: weights are wrong, or the size is too
    small, or too large for the memory.)
    """
    from styletransfer.networks.apply.painter import blend
    from styletransfer.system.devices import readable

    painter = _painter()
    painter.config = config
    blend(config, list(each(config.style)), named=False)
    height, width = painter.size(size[::-1], Path(config.input))
    memory = readable(painter.needed((height, width)))
    cost = {"width": width, "height": height, "memory": memory, "work": height * width}
    return cost | {"pace": _film_pace()}


@cache
def _film_pace() -> float:
    """Measure the painter; return the expected seconds for one pixel of a film's frame."""
    import torch

    frame = torch.rand(1, 3, 256, 256)
    for _ in range(2):  # the first one is slower
        began = time.perf_counter()
        _painter().paint(frame)
    return (time.perf_counter() - began) * FILM_TIME / frame[0, 0].numel()


def converted(path: str, extension: str) -> bytes:
    """Return a picture file in the format of an extension, such as ".tiff", at full size."""
    from styletransfer.pictures import images
    from styletransfer.pictures.decode import xmp_packet

    picture = images.read(path)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"pastiche{extension}"
        images.write(file, picture.rgb, picture.alpha, xmp=xmp_packet(Path(path)))
        return file.read_bytes()
