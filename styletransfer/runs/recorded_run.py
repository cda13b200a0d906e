"""Recorded runs: writes a run's folder, resumes from its checkpoint, changes its settings."""

import logging
import time
from collections.abc import Callable
from pathlib import Path

from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.job import Job
from styletransfer.job.prepare import prepare
from styletransfer.optimize import Iterate, Outcome
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


# Called after each step with the run and the step's result; the run waits for it. It may change
# settings with `RecordedRun.steer`, or raise KeyboardInterrupt to end the run early.
StepCallback = Callable[["RecordedRun", Iterate], None]


class RecordedRun:
    """A RecordedRun is a run that writes a folder; config.resume="auto" resumes from the folder.

    Args:
        config: the settings.
        job: the job of `config`.
        folder: folder of the run for metrics, the checkpoint and `run.json`.
        picture: path of the pastiche.
        guide: see `StepCallback`.

    Attributes:
        outcome: result of `complete`.
        seconds: duration of the optimisation, without the time in the guide.
        picture: path of the pastiche; it is in `folder` if the given path could not be written, or
            if the run gave up and a file was already there.
        problem: one line, why the run gave up or `picture` is another path; None without a problem.

    Raises:
        UserError: the checkpoint is damaged or belongs to another run.
    """

    def __init__(
        self,
        config: TrainConfig,
        job: Job,
        folder: Path,
        picture: Path,
        guide: StepCallback | None = None,
    ) -> None:
        self.config, self.job = config, job
        self.folder, self.picture, self.guide = folder, picture, guide
        self.recipe = describe(config, job)
        self.checkpoint = Checkpoint(folder / CHECKPOINT, config.checkpoint_every)
        self.before = 0.0  # seconds up to the checkpoint, minus the time in the guide since
        if config.resume == "auto" and self.checkpoint.exists():
            self._load()
        else:
            self.checkpoint.remove()
            self.run = Run(job)

    def complete(self) -> None:
        """Make the remaining steps, then write the pictures and the record."""
        done, self.start_time = self.run.steps, time.perf_counter()
        with Metrics(self.folder / METRICS, done) as self.metrics, ProgressBar(done) as bar:
            write_record(self.folder, self.recipe, "running", self.picture)
            self.outcome = self.run.complete([bar, self.metrics, self._after_step])
        self.seconds = self._seconds()
        self._leave(self.outcome)

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
            start = time.perf_counter()
            try:
                self.guide(self, iterate)
            finally:
                self.before -= time.perf_counter() - start
        if iterate.step == self.config.stop_after:
            raise KeyboardInterrupt

    def _load(self) -> None:
        from styletransfer.runs.resume import check_recipe

        saved = self.checkpoint.load(self.job.device)
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

    def _leave(self, result: Outcome) -> None:
        """Write pictures, record and, if stopped, a checkpoint."""
        pastiche, alpha = result.picture, self.job.pictures.alpha
        stopped = [override("stop_after", result.steps)] if result.interrupted else []
        xmp = metadata("train", self.recipe, *stopped) if self.config.recipe else b""
        spare = self.folder / f"pastiche{self.picture.suffix}"
        if result.problem is not None and self.picture.exists():  # keep what is better than this
            self.picture = spare
        self.picture, problem = _write_picture(self.picture, spare, pastiche, alpha, xmp)
        self.problem = result.problem or problem
        _keep_pictures(self.folder, self.picture, pastiche, self.job, xmp)
        status = "finished"
        if result.interrupted:
            status = "stopped"
            if self.config.checkpoint_every:
                self._save()
        elif self.problem is not None:
            status = "gave up"
        known = {"seconds": self.seconds, "steps": result.steps}
        write_record(self.folder, self.recipe, status, self.picture, **known)
        if status == "finished":  # last, so that a kill before run.json is written loses nothing
            self.checkpoint.remove()


def _write_picture(
    path: Path, spare: Path, image: Tensor, alpha: Tensor | None, xmp: bytes
) -> tuple[Path, str | None]:
    """Write the pastiche to `path` or, if that fails, to `spare`.

    Return its path, and one line that says why if it is not `path` (UserError: both failed).
    """
    try:
        images.write(path, image, alpha, xmp=xmp)
    except UserError as error:
        if spare == path:
            raise
        images.write(spare, image, alpha, xmp=xmp)
        return spare, f"{error}; the picture is at {spare} instead"
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
