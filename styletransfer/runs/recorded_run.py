"""A run with its folder: what it keeps there, how it goes on, and how it is steered."""

import logging
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.job.job import Job
from styletransfer.job.prepare import prepare
from styletransfer.optimize.results import Callback, Iterate, Outcome
from styletransfer.optimize.run import Run, Snapshot
from styletransfer.pictures import images
from styletransfer.runs.changes import changed, in_turn, with_change
from styletransfer.runs.folder import (
    CHECKPOINT,
    CONTENT,
    FREE_KEYS,
    METRICS,
    PASTICHE,
    write_record,
)
from styletransfer.runs.recipe import Recipe, check_recipe, recipe, until
from styletransfer.runs.watchers import Metrics, ProgressBar, StepPictures
from styletransfer.settings import ChangeConfig, TrainConfig
from styletransfer.system.checkpoint import Checkpoint

logger = logging.getLogger(__name__)

# Snapshots that are kept; each holds a picture.
MOST = 20


def describe(config: TrainConfig, job: Job) -> Recipe:
    """Return what the picture of a job depends on (UserError: a file cannot be read)."""
    return recipe(config, FREE_KEYS, device=str(job.device), precision=job.precision)


@dataclass(frozen=True)
class HistoryEntry:
    """A snapshot to go back to, numbered from 1; with its changes made and settings in force."""

    number: int
    snapshot: Snapshot
    reason: str
    changes: int
    config: TrainConfig


class Guide(Protocol):
    """Who may steer a run. It may also take its time: a run waits for it."""

    def step(self, work: "RecordedRun", iterate: Iterate) -> None:
        """Look at a step that was made; a KeyboardInterrupt ends the run early."""

    def end(self, work: "RecordedRun") -> bool:
        """Tell whether the run, of which all is written, was steered and goes on."""


class RecordedRun:
    """A run with its folder and its checkpoint, which it goes on from if it should.

    `job` is what `config` comes to, before any change; the pastiche goes to `picture`. (UserError:
    a checkpoint that is damaged or of another run.)
    """

    def __init__(self, config: TrainConfig, job: Job, folder: Path, picture: Path) -> None:
        # What was asked for; its `changes` are those that are planned, and those made since.
        self.config, self.folder, self.picture = config, folder, picture
        # The settings in force, and how many of the changes are.
        self.job, self.now, self.made = job, config, 0
        self.history: list[HistoryEntry] = []  # the last MOST snapshots that were kept
        self._numbers = count(1)
        self.recipe = describe(config, job)
        self.checkpoint = Checkpoint(folder / CHECKPOINT, config.checkpoint_every)
        self.before = 0.0
        self._turn: Snapshot | None = None  # at which the last change was made
        self._scale = 0
        if config.resume == "auto" and self.checkpoint.exists():
            self._load()
        else:
            self.checkpoint.remove()
            self.run = Run(job)

    def complete(self, guide: Guide | None) -> tuple[Outcome, Path, str | None]:
        """Make the steps that are left, and write what comes of them.

        Return that, where its picture is, and one line if that is not where it should be.
        """
        self._record("running")
        done, self.began = self.run.steps, time.perf_counter()
        with Metrics(self.folder / METRICS, done) as self.metrics, ProgressBar(done) as bar:
            pictures = StepPictures(self.folder / "snapshots", self.config.snapshot_every)
            callbacks: list[Callback] = [bar, self.metrics, pictures]
            callbacks.append(partial(self._after_step, guide))
            self._change_if_due()
            while True:
                result = self.run.complete(callbacks)
                ended = not result.interrupted and result.problem is None
                if ended and self.made < len(self.config.changes):
                    self._change()  # meant for a step that a shorter run has not made
                    self._change_if_due()
                    continue
                where = self._leave(result)  # before anything else can go wrong
                if guide is None or not ended or not self._goes_on(guide):
                    return result, *where
                self._record("running")

    def steer(self, values: dict[str, Any]) -> None:
        """Go on under other settings from the best picture so far, and put that on record.

        Changes that were planned for later are dropped. (UserError: the run is as it was.)
        """
        config = changed(self.now, values)
        job = prepare(config, like=self.job)
        changes, snapshot = self.config.changes[: self.made], self.run.snapshot()
        if changes and changes[-1].after == snapshot.steps and self._turn is not None:
            snapshot = self._turn  # of several changes at one step, only their sum counts
        else:
            named = ", ".join(f"{key}={value}" for key, value in values.items())
            self.remember(f"before {named}", snapshot)
        change = ChangeConfig(snapshot.steps, values)
        self._turn_to(snapshot, job, config, with_change(changes, change))

    def remember(self, reason: str, snapshot: Snapshot | None = None) -> None:
        """Keep a snapshot, by default where the run is now, to go back to it later."""
        kept = snapshot or self.run.snapshot()
        entry = HistoryEntry(next(self._numbers), kept, reason, self.made, self.now)
        self.history = [*self.history, entry][-MOST:]

    def go_back(self, number: int) -> None:
        """Go on from a snapshot that was kept, as if nothing had been done since."""
        entry = next((entry for entry in self.history if entry.number == number), None)
        if entry is None:
            numbers = ", ".join(str(entry.number) for entry in self.history) or "none"
            raise UserError(f"there is no moment {number} to go back to; there are {numbers}")
        self.history = [other for other in self.history if other.number <= number]
        job = prepare(entry.config, like=self.job)
        # What was saved since belongs to a way that this run has not gone.
        self.checkpoint.remove()
        self.metrics.rewind(entry.snapshot.steps)
        change = ChangeConfig(entry.snapshot.steps, {})
        changes = with_change(self.config.changes[: entry.changes], change)
        self._turn_to(entry.snapshot, job, entry.config, changes)

    def _turn_to(
        self, snapshot: Snapshot, job: Job, config: TrainConfig, changes: list[ChangeConfig]
    ) -> None:
        """Go on from a snapshot under another job, which the last of the changes has made."""
        self.config = replace(self.config, changes=changes)
        self.recipe = describe(self.config, job)
        self._record("running")  # before it is so: a checkpoint never knows more than the record
        self._go_on(snapshot, job, config)
        self.made = len(changes)

    def _change_if_due(self) -> None:
        changes = self.config.changes
        while self.made < len(changes) and changes[self.made].after <= self.run.steps:
            self._change()

    def _change(self) -> None:
        config = changed(self.now, self.config.changes[self.made].set)
        self._go_on(self.run.snapshot(), prepare(config, like=self.job), config)
        self.made += 1

    def _go_on(self, snapshot: Snapshot, job: Job, config: TrainConfig) -> None:
        self.run.go_on_from(snapshot, job)
        self._turn, self.job, self.now = snapshot, job, config

    def _after_step(self, guide: Guide | None, iterate: Iterate) -> None:
        """Save, ask the guide, change and stop, each if it is time."""
        if self.checkpoint.is_due():
            self._save()
        if guide is not None:
            if iterate.scale != self._scale:
                self._scale = iterate.scale
                self.remember(f"scale {iterate.scale}")
            with self._clock_stopped():
                guide.step(self, iterate)
        self._change_if_due()
        if iterate.step == self.config.stop_after:
            raise KeyboardInterrupt

    def _goes_on(self, guide: Guide) -> bool:
        """Ask the guide whether it goes on; to be interrupted is a no."""
        with self._clock_stopped():
            try:
                return guide.end(self)
            except KeyboardInterrupt:
                return False

    @contextmanager
    def _clock_stopped(self) -> Iterator[None]:
        """Leave the time that a guide takes out of the run's."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.before -= time.perf_counter() - began

    def _load(self) -> None:
        saved = self.checkpoint.load()
        try:
            self.made = saved["changes"]
            then, now = (until(whole, self.made) for whole in (saved["description"], self.recipe))
            check_recipe(then, now, FREE_KEYS)
            if self.made:
                self.now = in_turn(self.config, self.config.changes)[self.made - 1]
                self.job = prepare(self.now, like=self.job)
            self.run = Run(self.job)
            self.run.load_state_dict(saved["run"])
            self.before = saved["seconds"]
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            path = self.checkpoint.path
            raise UserError(f"{path} is no run's checkpoint; start afresh") from error
        logger.info("going on from step %d of %d", self.run.steps, self.run.planned)

    def _save(self) -> None:
        self.metrics.flush()
        state = {
            "description": self.recipe,
            "changes": self.made,
            "run": self.run.state_dict(),
            "seconds": self._seconds(),
        }
        self.checkpoint.try_to_save(state)

    def _seconds(self) -> float:
        """Return the time of optimisation so far, that before a checkpoint included."""
        return round(self.before + time.perf_counter() - self.began, 1)

    def _record(self, status: str) -> None:
        write_record(self.folder, self.recipe, status, self.picture)

    def _leave(self, result: Outcome) -> tuple[Path, str | None]:
        """Write the pictures and the checkpoint, or remove the one that is no longer needed."""
        seconds = self._seconds()
        pastiche = result.picture
        picture, problem = _write_picture(self.picture, self.folder, pastiche, self.job.alpha)
        _keep_pictures(self.folder, picture, pastiche, self.job)
        status = "finished"
        if result.interrupted:
            status = "stopped"
            if self.config.checkpoint_every:
                self._save()
        elif result.problem is not None or problem is not None:
            status = "gave up"
        known = {"seconds": seconds, "steps": result.steps}
        write_record(self.folder, self.recipe, status, picture, **known)
        if status == "finished":  # and said so, lest a kill in between costs the whole run
            self.checkpoint.remove()
        return picture, problem


def _write_picture(
    path: Path, folder: Path, image: Tensor, alpha: Tensor | None
) -> tuple[Path, str | None]:
    """Write the pastiche to `path`; or into `folder`, or among the system's temporary files.

    Return where it is, and one line if that is not `path` (UserError: it is nowhere).
    """
    elsewhere = (folder, Path(tempfile.gettempdir()) / f"styletransfer-{time.time_ns()}")
    places = dict.fromkeys((path, *(parent / f"pastiche{path.suffix}" for parent in elsewhere)))
    errors = []
    for place in places:
        try:
            images.write(place, image, alpha)
        except UserError as error:
            errors.append(error)
        else:
            return place, f"{errors[0]}; the picture is at {place} instead" if errors else None
    raise errors[0]


def _keep_pictures(folder: Path, picture: Path, image: Tensor, job: Job) -> None:
    """Keep the pastiche (1, 3, H, W) and its content in the run's folder, without loss, for `mix`.

    Nothing is written over `picture`, where the pastiche is already.
    """
    depth = images.BIT_DEPTHS[picture.suffix.lower()][0]
    try:
        for name, rgb in ((CONTENT, job.pictures.content), (PASTICHE, image)):
            path = folder / name
            if not (path.exists() and path.samefile(picture)):
                images.write(path, rgb, job.alpha, bit_depth=depth)
    except UserError as error:
        logger.warning("%s; going on without", error)
