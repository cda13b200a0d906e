"""The painting of a film, from its frames to the finished file, in a folder of its own."""

import logging
import sys
from collections.abc import Iterable, Iterator
from itertools import tee
from pathlib import Path

from torch import Tensor
from tqdm.auto import tqdm

from styletransfer.commands.film.prepare import FilmJob, check_record, prepare
from styletransfer.config import FilmConfig
from styletransfer.errors import UserError
from styletransfer.films import Film, FilmWriter
from styletransfer.films.flicker import measure, report, style_loss_of
from styletransfer.films.flow import motion_between
from styletransfer.films.painter import FilmPainter
from styletransfer.pictures import images
from styletransfer.pictures.color import with_chroma_of
from styletransfer.system.files import check_folder, remove_stale
from styletransfer.system.lock import locked
from styletransfer.system.signals import Stop, signals_held, stop_on_signals

logger = logging.getLogger(__name__)


def paint_film(config: FilmConfig, folder: Path) -> str:
    """Paint a film, or go on where its frames in `folder` end; return what was found, and its file.

    Each frame is kept as a PNG file in `folder`, and the film is made of them. A signal such as
    Ctrl-C ends the painting, and leaves a film of the frames that there are.

    Raises:
        UserError: bad input, before anything is written; or something cannot be written.
        Stopped: a signal has come.
    """
    with stop_on_signals() as stop, Film(config.content) as film:
        job = prepare(config, film, folder)
        check_folder(job.path(0))
        folder.mkdir(parents=True, exist_ok=True)
        # Held: what follows is to come to an end of its own, whatever is pressed.
        with signals_held(), locked(folder):
            check_record(job)
            remove_stale(job.path(0).parent)
            count = paint_frames(job, stop)
            write_film(job, count, stop)
            found = measured(job, count)
    return f"{found}\n{job.output}"


def paint_frames(job: FilmJob, stop: Stop) -> int:
    """Paint the frames that are not there yet, until a signal comes; return how many there are.

    Raises:
        UserError: a frame could not be painted or written; those before it stay.
    """
    config = job.config
    painter = FilmPainter(job.picture, config.frame_steps, config.temporal_weight, motion_between)
    count = 0
    bar = tqdm(
        job.contents(),
        total=job.film.count or None,
        unit="frame",
        dynamic_ncols=True,
        disable=sys.stderr is None,
    )
    for number, content in enumerate(bar):
        path = job.path(number)
        if not path.exists():
            result = painter.paint(content)
            if result.problem is not None:
                raise UserError(f"frame {number + 1}: {result.problem}")
            if result.interrupted or stop.asked is not None:
                break
            images.write(path, result.image, bit_depth=16)
        # As it was written: so a film that was stopped goes on with the very same bits.
        painter.before = None if config.independent else (content, images.read(path).rgb)
        count = number + 1
    bar.close()
    if stop.asked is not None:
        logger.warning("stopped; run the same command to go on after frame %d", count)
    return count


def painted(job: FilmJob, contents: Iterable[Tensor], count: int) -> Iterator[Tensor]:
    """Yield the first `count` painted frames (1, 3, H, W) in the colours that are asked for.

    Args:
        job: what was painted.
        contents: the frames of the input, (1, 3, h, w) of any size.
        count: how many are painted.
    """
    for number, content in zip(range(count), contents, strict=False):
        image = images.read(job.path(number)).rgb
        if job.config.color == "content_luminance":
            content = images.resize(content, (image.shape[2], image.shape[3]))
            image = with_chroma_of(image, content, job.config.color_strength)
        yield image


def write_film(job: FilmJob, count: int, stop: Stop) -> None:
    """Make a film of the first `count` frames; after a signal, under the name of a part.

    Raises:
        UserError: it cannot be written.
        Stopped: a signal has come; the part is there.
    """
    with FilmWriter(job.output, like=job.film) as writer:
        frames, again = tee(job.film.frames())  # in step: one frame is held
        contents = (frame.image for frame in again)
        for image, frame in zip(painted(job, contents, count), frames, strict=False):
            writer.write(image, frame.time)
        if stop.asked is not None:
            raise stop.asked


def measured(job: FilmJob, count: int) -> str:
    """Return a table of how much the input and the painted film flicker."""
    contents, again = tee(job.contents())  # in step, as films are measured: few frames are held
    films = {"input": contents, "painted": painted(job, again, count)}
    return report(measure(films, motion_between, style_loss_of(job.picture)))
