"""Paints films and sketches: with a style network, or with pixels copied from a painting."""

import shutil
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor

from styletransfer.films.commands.film import FilmConfig
from styletransfer.films.copier import FrameCopier
from styletransfer.films.film_run import FilmRun
from styletransfer.films.read import Film
from styletransfer.networks.apply.painter import Painter, paint_film, paint_picture
from styletransfer.pictures import images
from styletransfer.runs.claim import claimed
from styletransfer.runs.recipe import settings
from styletransfer.runs.record import CONTENT, PASTICHE, write_record
from styletransfer.studio.guide import OFTEN, encode
from styletransfer.studio.worker import RunLink
from styletransfer.system.signals import Stop, stop_on_signals


def paint(order: dict[str, Any], link: RunLink) -> str:
    """Paint what the server's message `order` describes; return "finished" or "stopped".

    The order's folder receives the files of a run; the pastiche of a film is the last painted
    frame. A stopped film holds the frames that were painted before the stop.
    """
    folder, config = Path(order["folder"]), order["config"]
    viewer = _Viewer(link)
    recipe = {"config": settings(order["shown"])}
    output = Path(config.output)
    painter = None if isinstance(config, FilmConfig) else Painter(config)
    keep = partial(write_record, folder, recipe, picture=output)
    with stop_on_signals() as stop, claimed(folder, ()):
        keep(status="running")  # written first: the page lists even a killed run
        link.say("begun")
        to_paint = None
        if painter is None:
            to_paint = _copy_frames(config, folder, stop, viewer)
        elif order["kind"] == "film":
            paint_film(painter, Path(config.input), output, viewer.show)
        else:
            paint_picture(painter, Path(config.input), output)
            shutil.copyfile(output, folder / PASTICHE)
            viewer.show(1, images.read(config.input).rgb, images.read(output).rgb)
        content, painted = viewer.last
        if order["kind"] == "film":
            images.write(folder / PASTICHE, painted)
        images.write(folder / CONTENT, images.resize(content, images.size_of(painted)))
        status = "stopped" if viewer.is_stopped and order["kind"] == "film" else "finished"
        keep(status=status, seconds=viewer.seconds, steps=viewer.count, to_paint=to_paint)
    return status


def _copy_frames(config: FilmConfig, folder: Path, stop: Stop, viewer: "_Viewer") -> float | None:
    """Paint a film with pixels copied from paintings; remove the painted frames' files.

    Return the time in seconds, from the film's start, of the middle of the frame that is worth
    painting next, see `FrameCopier.worst`, or None.
    """
    with Film(config.content) as film, tempfile.TemporaryDirectory(dir=folder) as frames:
        run = FilmRun(config, film, Path(frames))
        run.check_record()
        run.write(*run.paint(stop, viewer.show), stop)
        if not isinstance(run.painter, FrameCopier) or (worst := run.painter.worst()) is None:
            return None
        frame = film.frame(str(worst))
        return round(float(frame.time + frame.duration / 2), 3)


class _Viewer:
    """_Viewer reports painted frames to the server, and carries out requests to pause or stop."""

    def __init__(self, link: RunLink) -> None:
        self._link = link
        self._began, self._next_preview = time.monotonic(), 0.0
        self.count, self.seconds, self.is_stopped = 0, 0.0, False
        self.last: tuple[Tensor, Tensor]  # last input frame, last painted frame; (1, 3, H, W)

    def show(self, frames: int, content: Tensor, painted: Tensor) -> bool:
        """Report a painted frame of a film of `frames` frames; return False to end the film."""
        self.count, self.last, now = self.count + 1, (content, painted), time.monotonic()
        self.seconds = now - self._began
        picture = None
        if now >= self._next_preview:
            self._next_preview, picture = now + OFTEN, encode(painted)
        left = self.seconds / self.count * max(frames - self.count, 0)
        steps, seconds = max(frames, self.count), round(self.seconds, 1)
        where = {"step": self.count, "steps": steps, "scale": 1, "scales": 1, "left": left}
        try:
            self._link.say("progress", **where, seconds=seconds, picture=picture)
            self._link.obey()
        except KeyboardInterrupt:
            self.is_stopped = True
        self._began += time.monotonic() - now  # do not count the time of a pause
        return not self.is_stopped
