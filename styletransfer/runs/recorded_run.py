"""Recorded runs: writes a run's folder, resumes from its checkpoint, changes its settings."""

import logging
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Protocol, Self

from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.job import Job
from styletransfer.job.prepare import prepare
from styletransfer.optimize import Callback, Iterate, Outcome
from styletransfer.optimize.run import Run
from styletransfer.pictures import images
from styletransfer.runs import CHECKPOINT, CONTENT, FREE_KEYS, METRICS, PASTICHE, write_record
from styletransfer.runs.recipe import Recipe, metadata, recipe
from styletransfer.runs.watchers import Metrics, ProgressBar
from styletransfer.settings import TrainConfig
from styletransfer.settings.values import override
from styletransfer.system.checkpoint import Checkpoint

logger = logging.getLogger(__name__)


def describe(config: TrainConfig, job: Job) -> Recipe:
    """Return the recipe of a job's pastiche (UserError: an input file cannot be read)."""
    return recipe(config, FREE_KEYS, device=str(job.device), precision=job.precision)


class Guide(Protocol):
    """A Guide observes a run and may change its settings; the run waits for each method."""

    def step(self, work: "RecordedRun", iterate: Iterate) -> None:
        """Observe a completed step; raise KeyboardInterrupt to end the run early."""

    def end(self, work: "RecordedRun") -> None:
        """Observe the finished, written run."""


class RecordedRun:
    """A RecordedRun is a run that writes a folder; config.resume="auto" resumes from the folder.

    Use it as a context manager around the steps; its exit closes the metrics and the progress bar.

    Args:
        config: the settings.
        job: the job of `config`.
        folder: folder of the run for metrics, the checkpoint and `run.json`.
        picture: path of the pastiche.
        guide: an observer that may change settings during the run, or None.

    Raises:
        UserError: the checkpoint is damaged or belongs to another run.
    """

    def __init__(
        self, config: TrainConfig, job: Job, folder: Path, picture: Path, guide: Guide | None = None
    ) -> None:
        self.config, self.job = config, job
        self.folder, self.picture, self.guide = folder, picture, guide
        self.recipe = describe(config, job)
        self.checkpoint = Checkpoint(folder / CHECKPOINT, config.checkpoint_every)
        self.before = 0.0  # seconds up to the checkpoint, minus the time in the guide since
        self.written = picture  # path to which the pastiche was written
        self.problem: str | None = None  # one line if `written` is not `picture`
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
            self.callbacks: list[Callback] = [bar, self.metrics, self._after_step]
            self._open = stack.pop_all()
        write_record(self.folder, self.recipe, "running", self.picture)
        return self

    def __exit__(self, *raised: object) -> None:
        self._open.close()

    def finish(self, outcome: Outcome) -> None:
        """Write the pictures and the record; then call the guide if the run made all its steps."""
        self.written, self.problem = self._leave(outcome)  # before the guide, which may raise
        if self.guide is not None and outcome.is_whole:
            with suppress(KeyboardInterrupt):
                self.guide.end(self)

    def steer(self, config: TrainConfig) -> None:
        """Continue from the best picture so far with new settings, and record them.

        (UserError: the settings cannot work; the run is unchanged.)
        """
        job = prepare(config, like=self.job)
        recipe_now = describe(config, job) | {"steered": True}
        self.run.steer(job)
        self.config, self.job, self.recipe = config, job, recipe_now
        # First, so that a killed process leaves no old checkpoint beside run.json of new settings.
        self.checkpoint.remove()
        write_record(self.folder, self.recipe, "running", self.picture)
        if self.checkpoint.every:
            self._save()

    def _after_step(self, iterate: Iterate) -> None:
        """Save a checkpoint if one is due, call the guide, and stop at step `stop_after`."""
        if self.checkpoint.is_due():
            self._save()
        if self.guide is not None:
            with self._clock_stopped():
                self.guide.step(self, iterate)
        if iterate.step == self.config.stop_after:
            raise KeyboardInterrupt

    @contextmanager
    def _clock_stopped(self) -> Iterator[None]:
        """Exclude the time of the `with` block, a call of the guide, from the run's seconds."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.before -= time.perf_counter() - start

    def _load(self) -> None:
        from styletransfer.runs.resume import check_recipe

        saved = self.checkpoint.load()
        try:
            check_recipe(saved["description"], self.recipe, FREE_KEYS)
            self.recipe = saved["description"] | self.recipe  # keeps the key "steered", if any
            self.run = Run(self.job)
            self.run.load_state_dict(saved["run"])
            self.before = float(saved["seconds"])
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            path = self.checkpoint.path
            raise UserError(f"{path} is no run's checkpoint; start afresh") from error
        logger.info("going on from step %d of %d", self.run.steps, self.run.planned)

    def _save(self) -> None:
        self.metrics.flush()
        state = {
            "description": self.recipe,
            "run": self.run.state_dict(),
            "seconds": self._seconds(),
        }
        self.checkpoint.try_to_save(state)

    def _seconds(self) -> float:
        """Return the seconds of optimisation so far, including those before a checkpoint."""
        return round(self.before + time.perf_counter() - self.start_time, 1)

    def _leave(self, result: Outcome) -> tuple[Path, str | None]:
        """Write pictures, record and, if stopped, a checkpoint; return (path, problem or None)."""
        seconds = self._seconds()
        pastiche, alpha = result.picture, self.job.pictures.alpha
        stopped = [override("stop_after", result.steps)] if result.interrupted else []
        xmp = metadata("train", self.recipe, *stopped) if self.config.recipe else b""
        picture, problem = _write_picture(self.picture, self.folder, pastiche, alpha, xmp)
        _keep_pictures(self.folder, picture, pastiche, self.job, xmp)
        status = "finished"
        if result.interrupted:
            status = "stopped"
            if self.config.checkpoint_every:
                self._save()
        elif result.problem is not None or problem is not None:
            status = "gave up"
        known = {"seconds": seconds, "steps": result.steps}
        write_record(self.folder, self.recipe, status, picture, **known)
        if status == "finished":  # last, so that a kill before run.json is written loses nothing
            self.checkpoint.remove()
        return picture, problem


def _write_picture(
    path: Path, folder: Path, image: Tensor, alpha: Tensor | None, xmp: bytes
) -> tuple[Path, str | None]:
    """Write the pastiche to `path` or, if that fails, into `folder`.

    Return its path, and one line that says why if it is not `path` (UserError: both failed).
    """
    try:
        images.write(path, image, alpha, xmp=xmp)
    except UserError as error:
        other = folder / f"pastiche{path.suffix}"
        if other == path:
            raise
        images.write(other, image, alpha, xmp=xmp)
        return other, f"{error}; the picture is at {other} instead"
    return path, None


def _keep_pictures(folder: Path, picture: Path, image: Tensor, job: Job, xmp: bytes) -> None:
    """Write the pastiche (1, 3, H, W) and the content image as lossless files, for the command mix.

    The file `picture`, which already holds the pastiche, is not overwritten.
    """
    depth = images.BIT_DEPTHS[picture.suffix.lower()]
    try:
        for name, rgb, text in ((CONTENT, job.pictures.content, b""), (PASTICHE, image, xmp)):
            path = folder / name
            if not (path.exists() and path.samefile(picture)):
                images.write(path, rgb, job.pictures.alpha, bit_depth=depth, xmp=text)
    except UserError as error:
        logger.warning("%s; going on without", error)
