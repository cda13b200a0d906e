"""The queue: the run that is being painted, the waiting runs, and the messages to pages."""

import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from styletransfer.settings import each
from styletransfer.studio.access import RefusedError
from styletransfer.studio.form import (
    RunRequest,
    changed_settings,
    command_name,
    command_of,
    overrides_of,
    read_values,
)
from styletransfer.studio.pictures import PictureShelf
from styletransfer.studio.runs import OUTPUTS, StoredRun, keep_error
from styletransfer.studio.viewers import Viewer
from styletransfer.studio.worker import Worker
from styletransfer.system.files import new_folder

# Statuses of runs that have not ended. A run that is "queued" has not been sent to the runner.
OPEN = ("queued", "starting", "painting", "paused", "stopping")


@dataclass
class QueueEntry:
    """A QueueEntry is a run that waits, is being painted or has ended."""

    folder: Path  # folder of the run
    # Key -> value as the page stores it. Once the run has begun, the runner reports the values.
    settings: dict[str, Any]
    typed: Sequence[str]  # KEY=VALUE words of the run's command
    order: dict[str, Any]  # the message that starts the run in the runner's process
    status: str = "queued"  # later another of OPEN; at the end finished, stopped or failed
    error: str | None = None  # one line, if the run failed
    done: int = 0  # number of the last request to change settings that was answered
    progress: dict[str, Any] = field(default_factory=dict)  # the runner's last progress report
    is_steered: bool = False  # whether settings were changed during the run
    picture: bytes | None = None  # the last preview, a JPEG

    def __post_init__(self) -> None:
        self.id, self.kind = self.folder.name, self.order["kind"]  # kind: picture, sketch or film
        self.order |= {"type": "paint", "id": self.id, "folder": str(self.folder)}

    @property
    def is_open(self) -> bool:
        """Whether the run waits or is being painted."""
        return self.status in OPEN

    @property
    def shown(self) -> dict[str, Any]:
        """The plain values that the page receives."""
        reported = ("step", "steps", "scale", "scales", "seconds", "left", "loss")
        return {
            "id": self.id,
            "status": self.status,
            "settings": self.settings,
            "command": command_of(self.typed, name=command_name(self.kind, self.settings)),
            **{name: self.progress.get(name) for name in reported},
            "is_steered": self.is_steered,
            "done": self.done,
            "kind": self.kind,
            "error": self.error,
        }


class RunQueue:
    """A RunQueue paints runs, one at a time, in their order; each run has its own folder."""

    def __init__(self, folder: Path, shelf: PictureShelf, paint: Any) -> None:
        self._folder, self._shelf = folder, shelf
        self.current: QueueEntry | None = None  # the run being painted, else the last one
        self.waiting: deque[QueueEntry] = deque()
        self.viewers: set[Viewer] = set()  # open pages, to which the state is sent
        self.runner = Worker(paint, self._hear, self._runner_ended)
        self._steered = 0  # number of requests to change settings so far
        # Seconds per pixel of work, see `guide.work`: of the last picture or the runner's warm-up.
        self.pace: float | None = None
        self._runs_changed = 0  # number of changes of the runs on disk

    @property
    def at_work(self) -> QueueEntry | None:
        """The run that is being painted, or None."""
        return self.current if self.current and self.current.is_open else None

    def submit(self, request: RunRequest, record: dict[str, str]) -> str:
        """Append a new run, with its `RunRequest.record`, to the queue and return its id."""
        folder = Path(new_folder(str(self._folder / time.strftime("%Y-%m-%d_%H-%M-%S"))))
        config = replace(request.config, output=str(folder / OUTPUTS[request.kind]))
        order = {
            "kind": request.kind,
            "config": config,
            "record": record,
            "shown": request.shown,
        }
        self._enqueue(QueueEntry(folder, request.settings, request.overrides, order))
        return folder.name

    def go_on(self, run: StoredRun) -> None:
        """Append a stopped run to the queue (RefusedError: it waits or is being painted)."""
        if self.has(run.id):
            raise RefusedError("that picture is being painted already", 409)
        order: dict[str, Any] = {"kind": "picture", "config": None, "record": {}}
        entry = QueueEntry(run.record.folder, run.shown["settings"], run.typed or (), order)
        entry.is_steered = run.shown["is_steered"]
        self._enqueue(entry)

    def find(self, id: str) -> QueueEntry | None:
        """Return the run with this id if it waits, is being painted or was the last; else None."""
        entries = (*self.waiting, self.current)
        return next((entry for entry in entries if entry and entry.id == id), None)

    def has(self, id: str) -> bool:
        """Return whether a run waits or is being painted."""
        return (entry := self.find(id)) is not None and entry.is_open

    def needs(self, picture: str) -> bool:
        """Return whether a run that waits or is being painted uses the picture with this id."""
        entries = [one for one in (*self.waiting, self.current) if one and one.is_open]
        return any(picture in each(value) for one in entries for value in one.settings.values())

    def act(self, id: str, type: str, **details: Any) -> None:
        """Send the runner a request: "pause", "resume", "stop", or "steer" (change settings).

        (RefusedError: the run is not being painted, or is a film or a sketch and cannot change.)
        """
        entry = self.at_work
        if entry is None or entry.id != id:
            raise RefusedError("that picture is not being painted", 409)
        if entry.kind != "picture" and type == "steer":
            raise RefusedError(f"a {entry.kind} cannot be changed while it is painted", 409)
        if type == "stop":
            entry.status = "stopping"
            self.changed()
        self.runner.send({"type": type, "id": id, **details})

    def steer(self, id: str, changes: dict[str, Any]) -> int:
        """Ask the runner to change only the settings in `changes`.

        Other settings stay, since another page may have changed them. Return the request's number,
        which `QueueEntry.done` reaches once the runner has answered.
        """
        self._steered += 1
        self.act(id, "steer", changes=changes, number=self._steered)
        return self._steered

    def move(self, id: str, *, hurry: bool) -> None:
        """Move a waiting run forward by one in the queue if `hurry` is True; else remove it.

        (RefusedError: the run does not wait.)
        """
        if (entry := self.find(id)) is None or entry.status != "queued":
            raise RefusedError("that picture does not wait any more", 409)
        place = self.waiting.index(entry)
        self.waiting.remove(entry)
        if hurry:
            self.waiting.insert(max(0, place - 1), entry)
        else:
            _forget(entry)
        self.changed()

    def join(self) -> Viewer:
        """Add and return a Viewer for a new page; it first gets the state and the last preview."""
        viewer = Viewer()
        self.viewers.add(viewer)
        viewer.tell("state", self.state)
        if self.current is not None and self.current.picture is not None:
            viewer.tell("picture", self.current.picture)
        return viewer

    @property
    def state(self) -> dict[str, Any]:
        """The message to pages about the queue and the current run, without its progress."""
        return {
            "type": "state",
            "current": None if self.current is None else self.current.shown,
            "queue": [{"id": entry.id, "settings": entry.settings} for entry in self.waiting],
            "runs_changed": self._runs_changed,
        }

    def changed(self, *, runs: bool = False) -> None:
        """Send the state to all pages; `runs` is True if the runs on disk have changed."""
        self._runs_changed += runs
        self._tell("state", self.state)

    async def close(self, patience: float) -> None:
        """Stop and save the current run; kill the runner after `patience` seconds."""
        while self.waiting:
            _forget(self.waiting.popleft())
        await self.runner.close(patience)

    def _enqueue(self, entry: QueueEntry) -> None:
        self.waiting.append(entry)
        if self.at_work is None:
            self._next()
        self.changed()

    def _next(self) -> None:
        if self.waiting:
            entry = self.current = self.waiting.popleft()
            entry.status = "starting"
            self.runner.send(entry.order)

    def _hear(self, message: dict[str, Any]) -> None:
        """Handle a message of the runner's process; most of them come from `guide.py`."""
        entry = self.current
        if message["type"] == "ready":
            self.pace = self.pace or message["pace"]
        if entry is None or message.get("id") != entry.id:
            return
        if "now" in message:
            self._follow(entry, changed_settings(message["now"], self._shelf))
        match message["type"]:
            case "progress":
                self._progress(entry, message)
            case "begun" | "resumed" | "paused" as type:
                if entry.status != "stopping":
                    entry.status = "paused" if type == "paused" else "painting"
                self.changed(runs=type == "begun")
            case "standing":
                entry.done = message.get("number") or entry.done
                self._complain(message["error"], message.get("key"))
                self.changed()
            case "ended":
                self._end(entry, message["status"], message["error"], message.get("key"))

    def _follow(self, entry: QueueEntry, settings: dict[str, Any]) -> None:
        """Store the settings that the runner reports, and whether they changed during the run."""
        if entry.progress and settings != entry.settings:
            entry.is_steered = True
            entry.typed = overrides_of(read_values(settings, self._shelf))
        entry.settings = settings

    def _progress(self, entry: QueueEntry, message: dict[str, Any]) -> None:
        picture = message.pop("picture")
        entry.progress = message
        pace = message.pop("pace", None)
        # Only the pace of the finest scale counts, because this scale takes most of the time.
        if pace is not None and message["scale"] == message["scales"]:
            self.pace = pace
        self._tell("progress", message)
        if picture is not None:
            entry.picture = picture
            self._tell("picture", picture)

    def _tell(self, kind: str, news: Any) -> None:
        for viewer in self.viewers:
            viewer.tell(kind, news)

    def _complain(self, error: str | None, key: str | None) -> None:
        if error is not None:
            error = self._shelf.named(error)
            self._tell("message", {"type": "message", "error": error, "key": key})

    def _end(
        self, entry: QueueEntry, status: str, error: str | None = None, key: str | None = None
    ) -> None:
        if not entry.is_open:
            return
        entry.status, entry.error = status, error
        self._complain(error, key)
        _forget(entry)
        if error is not None:
            keep_error(entry.folder, self._shelf.named(error), entry.picture)
        self._next()
        self.changed(runs=True)

    def _runner_ended(self, reason: str) -> None:
        if (entry := self.at_work) is None:
            return
        if entry.status == "stopping":
            self._end(entry, "stopped")
        else:
            self._end(entry, "failed", f"the painting process {reason}")


def _forget(entry: QueueEntry) -> None:
    """Remove a run's folder if it is empty, which means that the run has not begun."""
    with suppress(OSError):
        entry.folder.rmdir()
