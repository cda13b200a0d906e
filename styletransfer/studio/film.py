"""A film that the studio paints, frame by frame: by a style network, or by the optimiser."""

import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from torch import Tensor

from styletransfer.commands.apply.painter import Painter, paint_film
from styletransfer.commands.film import FilmRun
from styletransfer.films.read import Film
from styletransfer.pictures import images
from styletransfer.runs.folder import CONTENT, PASTICHE, write_record
from styletransfer.studio.form import plain_values
from styletransfer.studio.guide import OFTEN, encode
from styletransfer.studio.worker import Orders
from styletransfer.system.signals import stop_on_signals


def paint(order: dict[str, Any], orders: Orders, pipe: Connection) -> str:
    """Paint a film into the folder of an order, show it as it grows, and return how it has ended.

    Its folder is like that of a run, with the last frame for a pastiche. A stop keeps the frames
    that there are.
    """
    folder, config = Path(order["folder"]), order["config"]
    viewer = _Viewer(order["id"], orders, pipe)
    pipe.send({"type": "begun", "id": order["id"]})
    with stop_on_signals() as stop:
        if order["command"] == "apply":
            paint_film(Painter(config), Path(config.input), Path(config.output), viewer.show)
        else:
            with Film(config.content) as film:
                run = FilmRun(config, film, folder)
                run.check_record()
                run.write(run.paint(stop, viewer.show), stop)
    content, painted = viewer.last
    images.write(folder / CONTENT, images.resize(content, (painted.shape[2], painted.shape[3])))
    images.write(folder / PASTICHE, painted)
    for name, text in order["record"].items():
        (folder / ".hydra").mkdir(exist_ok=True)
        (folder / ".hydra" / name).write_text(text, encoding="utf-8")
    status, facts = "stopped" if viewer.is_stopped else "finished", {"steps": viewer.count}
    record = {"config": plain_values(order["shown"]) | {"changes": []}}
    write_record(folder, record, status, Path(config.output), seconds=viewer.seconds, **facts)
    return status


class _Viewer:
    """Shows each frame to the server, and does there what the server asks for."""

    def __init__(self, id: str, orders: Orders, pipe: Connection) -> None:
        self._id, self._orders, self._pipe = id, orders, pipe
        self._began, self._next_preview = time.monotonic(), 0.0
        self.count, self.seconds, self.is_stopped = 0, 0.0, False
        self.last: tuple[Tensor, Tensor]  # a frame, and how it was painted

    def show(self, frames: int, content: Tensor, painted: Tensor) -> bool:
        """Tell of a frame of so many; False ends the painting."""
        self.count, self.last, now = self.count + 1, (content, painted), time.monotonic()
        self.seconds = now - self._began
        picture = None
        if now >= self._next_preview:
            self._next_preview, picture = now + OFTEN, encode(painted)
        left = self.seconds / self.count * max(frames - self.count, 0)
        self._say(step=self.count, steps=max(frames, self.count), left=left, picture=picture)
        is_paused = False
        while wish := self._orders.next_wish(self._id, wait=is_paused, other_runs=False):
            if wish["type"] == "stop":
                self._pipe.send({"type": "stopping", "id": self._id})
                self.is_stopped = True
            elif wish["type"] in ("pause", "resume"):
                is_paused = wish["type"] == "pause"
                said = "paused" if is_paused else "resumed"
                self._pipe.send({"type": said, "id": self._id})
            is_paused &= not self.is_stopped
        self.is_stopped |= self._orders.over
        return not self.is_stopped

    def _say(self, **message: Any) -> None:
        rest = {"scale": 1, "scales": 1, "seconds": round(self.seconds, 1)}
        self._pipe.send({"type": "progress", "id": self._id, **rest, **message})
