"""The desk: which run is being painted, which wait, and who watches."""

import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from styletransfer.settings.paths import new_folder
from styletransfer.studio import painter
from styletransfer.studio.asked import Asked
from styletransfer.studio.controls import key_in
from styletransfer.studio.form import changed_settings, shown_changes
from styletransfer.studio.job import RUNNING, Job
from styletransfer.studio.pictures import Pictures
from styletransfer.studio.refusal import RefusedError
from styletransfer.studio.runs import with_sums
from styletransfer.studio.viewer import Viewer, Viewers
from styletransfer.studio.worker import Worker

# Runs that may wait; steps whose losses are remembered.
MOST, MOST_STEPS = 8, 100_000


class Desk:
    """The runs of a studio, one at a time.

    Args:
        folder: where each gets a folder of its own.
        pictures: to name those of a run.
        paint: what the painter's process runs.

    Attributes:
        job: at work, or the last one that was; None before the first.
        queue: those that wait.
        viewers: who watches.
        runs_changed: counts what has changed among the runs on disk.
    """

    def __init__(self, folder: Path, pictures: Pictures, paint: Any = painter.main) -> None:
        self.folder, self._pictures = folder, pictures
        self.job: Job | None = None
        self.queue: deque[Job] = deque()
        self.runs_changed = 0
        self.painter = Worker(paint, self._hear, self._painter_ended)
        self._message: dict[str, Any] | None = None
        self.viewers = Viewers()

    @property
    def is_busy(self) -> bool:
        """Whether a run is at work."""
        return self.job is not None and self.job.status in RUNNING

    def submit(self, asked: Asked) -> Job:
        """Let a new run wait for its turn.

        Raises:
            RefusedError: too many wait.
        """
        self._check_room()
        folder = Path(new_folder(str(self.folder / time.strftime("%Y-%m-%d_%H-%M-%S"))))
        # A TIFF lets the run keep 16 bits a sample, in its PNG as well.
        config = replace(asked.config, output=str(folder / "pastiche.tiff"))
        order = {"config": config, "record": asked.record}
        return self._enqueue(Job(folder.name, folder, asked.settings, asked.overrides, order))

    def go_on(self, id: str, folder: Path, settings: dict[str, Any], typed: Sequence[str]) -> Job:
        """Let a run that was stopped wait to go on from its checkpoint.

        Raises:
            RefusedError: too many wait, or this one does already.
        """
        self._check_room()
        if any(job.id == id for job in self.queue) or self._is_at_work(id):
            raise RefusedError("that run is being painted already", 409)
        return self._enqueue(Job(id, folder, settings, typed, {"config": None, "record": {}}))

    def act(self, id: str, type: str, **details: Any) -> None:
        """Tell the painter something about a run: pause, resume, stop and so on.

        The one that was finished last can still be steered, and goes on then.

        Raises:
            RefusedError: that run is not at work.
        """
        job = self.job
        steers = type in ("steer", "undo")
        if job is None or job.id != id or not (self.is_busy or (steers and job.can_steer)):
            raise RefusedError("that run is not being painted", 409)
        if type == "stop":
            job.status = "stopping"
            self.changed()
        self.painter.send({"type": type, "job": id, **details})

    async def let_go(self, id: str) -> None:
        """Let the painter leave a finished run, whose folder it holds."""
        job = self.job
        if job is not None and job.id == id and not self.is_busy and job.status != "queued":
            self.painter.send({"type": "leave", "job": id})
            await job.left.wait()

    def cancel(self, id: str) -> None:
        """Take a run out of the queue.

        Raises:
            RefusedError: it does not wait.
        """
        for job in self.queue:
            if job.id == id:
                self.queue.remove(job)
                _forget(job)
                self.changed()
                return
        raise RefusedError("that run does not wait", 409)

    def join(self, viewer: Viewer) -> None:
        """Let somebody watch, from the latest state and picture on.

        Raises:
            RefusedError: too many do.
        """
        self.viewers.join(viewer)
        viewer.tell(self.state)
        if self.job is not None and self.job.picture is not None:
            viewer.show(self.job.picture)

    @property
    def state(self) -> dict[str, Any]:
        """What pages are told whenever something but the step changes."""
        return {
            "type": "state",
            "job": None if self.job is None else self.job.shown,
            "queue": [{"id": job.id, "settings": job.settings} for job in self.queue],
            "runs_changed": self.runs_changed,
            "message": self._message,
        }

    def changed(self, *, runs: bool = False) -> None:
        """Tell everybody, and that there are other runs on disk, if there are."""
        self.runs_changed += runs
        self.viewers.tell(self.state)

    async def close(self, patience: float) -> None:
        """Stop the run at work and keep it; end the painter, after `patience` seconds by force."""
        while self.queue:
            _forget(self.queue.popleft())
        await self.painter.close(patience)

    def _check_room(self) -> None:
        if len(self.queue) >= MOST:
            raise RefusedError(f"{MOST} runs wait already; wait for one, or take one out", 429)

    def _is_at_work(self, id: str) -> bool:
        return self.is_busy and self.job is not None and self.job.id == id

    def _enqueue(self, job: Job) -> Job:
        self.queue.append(job)
        self._message = None
        if not self.is_busy:
            self._next()
        self.changed()
        return job

    def _next(self) -> None:
        """Begin the run that has waited longest."""
        if not self.queue:
            return
        self.job = self.queue.popleft()
        self.job.status = "starting"
        order = {"type": "paint", "job": self.job.id, "folder": str(self.job.folder)}
        self.painter.send(order | self.job.order)

    def _hear(self, message: dict[str, Any]) -> None:
        """Take up what the painter says."""
        job = self.job
        if job is None or message.get("job") != job.id:
            return
        if "now" in message:
            self._stand(job, message)
        match message["type"]:
            case "begun":
                job.status = "painting"
                self.changed(runs=True)
            case "progress":
                self._progress(job, message)
            case "paused" | "resumed" as what if job.status != "stopping":
                job.status = "paused" if what == "paused" else "painting"
                self.changed()
            case "standing":
                self._message = None
                self.changed()
            case "refused":
                self._message = {"error": message["error"], "key": key_in(message["error"])}
                self.changed()
            case "finished":
                self._show(job, message["picture"])
                self._end(job, "finished", None)
            case "ended":
                job.left.set()
                if job.status in RUNNING:
                    self._end(job, message["status"], message["error"])
                else:
                    self.changed()

    def _stand(self, job: Job, message: dict[str, Any]) -> None:
        """Note what a run is and has become by being steered."""
        job.size = message["width"], message["height"]
        job.settings = changed_settings(message["now"], self._pictures)
        job.moments, job.changes = message["moments"], message["changes"]
        job.shown_changes = shown_changes(job.changes, self._pictures)

    def _progress(self, job: Job, message: dict[str, Any]) -> None:
        """Hand a report on to everybody who watches."""
        history = [[step, with_sums(losses)] for step, losses in message["history"]]
        if history:
            job.losses = [each for each in job.losses if each[0] < history[0][0]]
            job.losses += [(step, losses) for step, losses in history][:MOST_STEPS]
        dropped = ("picture", "history")
        job.progress = {name: value for name, value in message.items() if name not in dropped}
        losses = history[-1][1] if history else {}
        self.viewers.report({**job.progress, "history": history, "losses": losses})
        if message["picture"] is not None:
            self._show(job, message["picture"])

    def _show(self, job: Job, picture: bytes) -> None:
        """Show a picture to everybody who watches."""
        job.picture = picture
        self.viewers.show(picture)

    def _end(self, job: Job, status: str, error: str | None) -> None:
        """Note how a run has ended, and begin the next one."""
        job.status, job.error = status, error
        self._message = None if error is None else {"error": error, "key": key_in(error)}
        _forget(job)
        self._next()
        self.changed(runs=True)

    def _painter_ended(self, reason: str) -> None:
        """Note that the painter has died, and with it the run at work."""
        if self.job is None:
            return
        self.job.left.set()
        if self.is_busy:
            self._end(self.job, "failed", f"the painting process {reason}")
        else:
            self.changed()


def _forget(job: Job) -> None:
    """Remove the folder of a run that never began; one that did stays."""
    with suppress(OSError):
        job.folder.rmdir()
