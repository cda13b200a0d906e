"""A run with its folder: what it keeps there, how it resumes, and how it is steered."""

import logging
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, Self

from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.job.job import Job
from styletransfer.job.prepare import prepare
from styletransfer.optimize.results import Callback, Iterate, Outcome
from styletransfer.optimize.run import Run
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


def describe(config: TrainConfig, job: Job) -> Recipe:
    """Return what the picture of a job depends on (UserError: a file cannot be read)."""
    return recipe(config, FREE_KEYS, device=str(job.device), precision=job.precision)


class Guide(Protocol):
    """Observes and steers a run. It may take its time: the run waits for it."""

    def step(self, work: "RecordedRun", iterate: Iterate) -> None:
        """Look at a step that was made; a KeyboardInterrupt ends the run early."""

    def end(self, work: "RecordedRun") -> bool:
        """Return whether the finished run, all of which is written, was steered and goes on."""


class RecordedRun:
    """A run with its folder, from whose checkpoint it goes on if `config.resume` is "auto".

    Use as a context manager around the steps: leaving it closes the metrics and the progress bar.

    Args:
        config: the settings; its `changes` are those to come, and later those made as well.
        job: of `config`, before any change.
        folder: of the run; receives metrics, snapshots, the checkpoint and `run.json`.
        picture: path of the pastiche.
        guide: observes and steers the run, or None.

    Raises:
        UserError: a checkpoint that is damaged or of another run.
    """

    def __init__(
        self, config: TrainConfig, job: Job, folder: Path, picture: Path, guide: Guide | None = None
    ) -> None:
        self.config, self.folder, self.picture, self.guide = config, folder, picture, guide
        self.job, self.now = job, config  # in force, after `made` of the changes
        self.made = 0
        self.recipe = describe(config, job)
        self.checkpoint = Checkpoint(folder / CHECKPOINT, config.checkpoint_every)
        self.before = 0.0  # seconds of optimisation before the checkpoint
        self.written = picture  # where the pastiche is
        self.problem: str | None = None  # one line if it is not at `picture`
        if config.resume == "auto" and self.checkpoint.exists():
            self._load()
        else:
            self.checkpoint.remove()
            self.run = Run(job)

    def __enter__(self) -> Self:
        done, self.start_time = self.run.steps, time.perf_counter()
        with ExitStack() as stack:
            self.metrics = stack.enter_context(Metrics(self.folder / METRICS, done))
            bar = stack.enter_context(ProgressBar(done))
            pictures = StepPictures(self.folder / "snapshots", self.config.snapshot_every)
            self.callbacks: list[Callback] = [bar, self.metrics, pictures, self._after_step]
            self._open = stack.pop_all()
        return self

    def __exit__(self, *raised: object) -> None:
        self._open.close()

    def begin(self) -> None:
        """Put on record that the run is at work, and make the changes that are due."""
        self._record("running")
        self._change_if_due()

    def goes_on(self, outcome: Outcome) -> bool:
        """Write an outcome, and return whether the run goes on all the same.

        It does if a change was meant for a step that a settled run has not made, or if the guide
        steers the finished run.
        """
        if outcome.is_whole and self.made < len(self.config.changes):
            self._change()
            self._change_if_due()
            return True
        self.written, self.problem = self._leave(outcome)  # before anything else can go wrong
        if self.guide is None or not outcome.is_whole:
            return False
        with self._clock_stopped(), suppress(KeyboardInterrupt):
            if self.guide.end(self):
                self._record("running")
                return True
        return False

    def steer(self, values: dict[str, Any]) -> None:
        """Go on under other settings from the best picture so far, and put that on record.

        Changes that were planned for later are dropped. (UserError: the run is as it was.)
        """
        config = changed(self.now, values)
        job = prepare(config, like=self.job)
        change = ChangeConfig(self.run.steps, values)
        changes = with_change(self.config.changes[: self.made], change)
        self.config = replace(self.config, changes=changes)
        self.recipe = describe(self.config, job)
        self._record("running")  # before the change: a checkpoint never knows more than the record
        self._go_on_as(job, config, len(changes))

    def _change_if_due(self) -> None:
        changes = self.config.changes
        while self.made < len(changes) and changes[self.made].after <= self.run.steps:
            self._change()

    def _change(self) -> None:
        config = changed(self.now, self.config.changes[self.made].set)
        self._go_on_as(prepare(config, like=self.job), config, self.made + 1)

    def _go_on_as(self, job: Job, config: TrainConfig, made: int) -> None:
        self.run.steer(job)
        self.job, self.now, self.made = job, config, made

    def _after_step(self, iterate: Iterate) -> None:
        """Save, ask the guide, change and stop, each if it is time."""
        if self.checkpoint.is_due():
            self._save()
        if self.guide is not None:
            with self._clock_stopped():
                self.guide.step(self, iterate)
        self._change_if_due()
        if iterate.step == self.config.stop_after:
            raise KeyboardInterrupt

    @contextmanager
    def _clock_stopped(self) -> Iterator[None]:
        """Leave the time that a guide takes out of the run's."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.before -= time.perf_counter() - start

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
        return round(self.before + time.perf_counter() - self.start_time, 1)

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
