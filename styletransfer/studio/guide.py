"""What watches and steers a run from within, between two of its steps."""

import time
from multiprocessing.connection import Connection
from operator import attrgetter
from pathlib import Path
from typing import Any

from styletransfer.config import TrainConfig
from styletransfer.errors import UserError
from styletransfer.optimize.results import Iterate
from styletransfer.runs.recorded_run import RecordedRun
from styletransfer.studio.clock import Clock
from styletransfer.studio.controls import CONTROLS
from styletransfer.studio.orders import Orders
from styletransfer.studio.preview import Pace, encode

# Seconds between two reports of steps and losses.
REPORT = 0.1


class Guide:
    """Shows a run to the server after every step, and does there what the server asks for.

    Args:
        order: what the server has asked for: "job", "folder", and "record", Hydra's files by name.
        orders: where wishes come from.
        pipe: where reports go.
    """

    def __init__(self, order: dict[str, Any], orders: Orders, pipe: Connection) -> None:
        self._order, self._orders, self._pipe = order, orders, pipe
        self._job: str = order["job"]
        self._pace, self._reported = Pace(), 0.0
        self._history: list[tuple[int, Any]] = []
        self._clock = Clock()
        self._begun = False
        self._last: Iterate | None = None

    def step(self, work: RecordedRun, iterate: Iterate) -> None:
        """Look at what was evaluated, and do what is asked for.

        Raises:
            KeyboardInterrupt: the run is to be stopped, and what there is to be kept.
        """
        if not self._begun:
            self._begin(work)
        self._clock.step(iterate)
        self._last = iterate
        self._history.append((iterate.step, iterate.losses))
        self._report(work, iterate)
        while (wish := self._orders.next_wish(self._job)) is not None:
            if wish["type"] == "pause":
                self._pause(work, iterate)
            else:
                self._do(work, wish)
        if self._orders.over:
            raise KeyboardInterrupt

    def end(self, work: RecordedRun) -> bool:
        """Wait for the finished run to be steered; tell whether it was, and goes on.

        Another run, or the end of the pipe, ends the waiting.
        """
        work.metrics.flush()
        if self._last is not None:
            self._tell(work, self._last, None)
        self._say(type="finished", picture=encode(work.run.result().picture), **standing(work))
        with self._clock.stopped():
            while (wish := self._orders.next_wish(self._job, wait=True)) is not None:
                if wish["type"] == "leave":
                    return False
                if wish["type"] in ("steer", "undo") and self._do(work, wish):
                    self._say(type="resumed")
                    return True
        return False

    def _begin(self, work: RecordedRun) -> None:
        """Keep how the run was asked for where Hydra keeps it, and say what is going to be made."""
        self._begun = True
        folder = Path(self._order["folder"]) / ".hydra"
        for name, text in self._order["record"].items():
            folder.mkdir(exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        self._say(type="begun", **standing(work))

    def _pause(self, work: RecordedRun, iterate: Iterate) -> None:
        """Wait for a wish to go on, or to stop; do others meanwhile."""
        self._tell(work, iterate, encode(iterate.picture))
        self._say(type="paused")
        with self._clock.stopped():
            while True:
                wish = self._orders.next_wish(self._job, wait=True, other_runs=False)
                if wish is None:  # the server is gone
                    raise KeyboardInterrupt
                if wish["type"] == "resume":
                    break
                self._do(work, wish)
        self._say(type="resumed")

    def _do(self, work: RecordedRun, wish: dict[str, Any]) -> bool:
        """Do what is asked for, or say why that cannot be; tell whether the run goes another way.

        Raises:
            KeyboardInterrupt: it is to stop.
        """
        type, goes = wish["type"], False
        if type == "stop":
            raise KeyboardInterrupt
        try:
            if type == "steer" and (changes := differing(work.now, wish["config"])):
                work.steer(changes)
                goes = True
            elif type == "snapshot":
                work.remember("snapshot")
            elif type == "undo":
                work.go_back(wish["moment"])
                goes = True
        except UserError as error:
            self._say(type="refused", error=str(error), **standing(work))
        else:
            self._say(type="standing", **standing(work))
        return goes

    def _report(self, work: RecordedRun, iterate: Iterate) -> None:
        """Send steps and losses, and the picture, if it is time for them."""
        began = time.monotonic()
        if self._pace.is_due():
            picture = encode(iterate.picture)
            self._pace.made(began)
            self._tell(work, iterate, picture)
        elif began - self._reported >= REPORT:
            self._tell(work, iterate, None)

    def _tell(self, work: RecordedRun, iterate: Iterate, picture: bytes | None) -> None:
        """Send where the run is, its losses since the last report, and perhaps a picture."""
        self._reported = time.monotonic()
        history = [[step, losses.as_floats()] for step, losses in self._history]
        self._history.clear()
        height, width = iterate.image.shape[2:]
        self._say(
            type="progress",
            step=iterate.step,
            steps=iterate.steps,
            scale=iterate.scale,
            scales=iterate.scales,
            width=width,
            height=height,
            seconds=round(self._clock.seconds, 1),
            left=self._clock.left(work.run, iterate),
            history=history,
            picture=picture,
        )

    def _say(self, **message: Any) -> None:
        """Send a message about this run.

        Raises:
            KeyboardInterrupt: the server is gone.
        """
        try:
            self._pipe.send({"job": self._job, **message})
        except OSError as error:
            raise KeyboardInterrupt from error


def standing(work: RecordedRun) -> dict[str, Any]:
    """Return what a run is and has become by being steered, as plain values."""
    height, width = work.run.scales[-1].size
    return {
        "width": width,
        "height": height,
        "now": {key: attrgetter(key)(work.now) for key in CONTROLS},
        "changes": [{"after": each.after, "set": dict(each.set)} for each in work.config.changes],
        "moments": [
            {"number": entry.number, "step": entry.snapshot.steps, "reason": entry.reason}
            for entry in work.history
        ],
    }


def differing(now: TrainConfig, wanted: TrainConfig) -> dict[str, Any]:
    """Return the keys of the page, with the values wanted, that differ from those in force."""
    values = {key: attrgetter(key)(wanted) for key in CONTROLS}
    return {key: value for key, value in values.items() if value != attrgetter(key)(now)}
