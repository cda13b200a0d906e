"""Writes a run's files (metrics, checkpoints, pictures) while a loop makes the run's steps."""

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.job import Job
from styletransfer.job.groups import label_pictures
from styletransfer.job.prepare import prepare
from styletransfer.optimize import Iterate, Outcome, Run
from styletransfer.pictures import images
from styletransfer.runs.claim import claimed
from styletransfer.runs.folder import read_run
from styletransfer.runs.recipe import Recipe, metadata, recipe
from styletransfer.runs.record import (
    CHECKPOINT,
    CONTENT,
    CONTENT_REGIONS,
    FREE_KEYS,
    METRICS,
    PASTICHE,
    RECORD,
    STYLE_REGIONS,
    write_record,
)
from styletransfer.runs.resume import check_recipe
from styletransfer.runs.watchers import Metrics, ProgressBar
from styletransfer.settings import TrainConfig
from styletransfer.settings.values import override
from styletransfer.system.checkpoint import Checkpoint, check_like, refused
from styletransfer.system.files import sha256
from styletransfer.system.locks import output_locked
from styletransfer.system.signals import Stopped, signals_held, stop_on_signals

logger = logging.getLogger(__name__)


def names_of(config: TrainConfig) -> list[str]:
    """Return the names of the files that a run may write in its folder."""
    spare = f"pastiche{Path(config.output or PASTICHE).suffix}"
    found = (CONTENT_REGIONS, STYLE_REGIONS) if config.content_regions == "auto" else ()
    return list(dict.fromkeys((RECORD, PASTICHE, spare, CONTENT, *found, METRICS, CHECKPOINT)))


def files_written(config: TrainConfig, folder: Path) -> list[Path]:
    """Return the paths of the files in `names_of`, except a pastiche that is `config.output`."""
    paths = [folder / name for name in names_of(config)]
    own = os.path.realpath(config.output or "")
    return [path for path in paths if path.stem != "pastiche" or os.path.realpath(path) != own]


@contextmanager
def recorded(run: Run, config: TrainConfig, folder: Path) -> Iterator["Recording"]:
    """Record a run in `folder` while the `with` block makes its steps; then write the picture.

    The block must call the yielded `Recording` after each step. The folder and the output are
    locked until the picture is written. If `config.resume` is "auto" and the folder holds a
    checkpoint, the run continues from it. A signal, or the step `config.stop_after`, ends the block
    without an error: the best picture so far is written and, if `config.checkpoint_every` is above
    0, a checkpoint.

    The pastiche goes to `config.output` if that is set, and to `folder/pastiche.png`. The folder
    also gets the content image at the pastiche's size, for `mix`.

    Raises:
        UserError: another command is writing the output, the folder is another run's, its
            checkpoint is damaged or belongs to another run, or the picture cannot be written.
        Stopped: a signal came before there was a picture.
    """
    record = Recording(run, config, folder)
    # Signals wait, except while the objective is evaluated. Otherwise a file might be half-written,
    # and a signal while torch imports libraries, in the first step, would abort the process.
    claim = claimed(folder, record.written, goes_on=record.goes_on)
    locked = output_locked(record.picture)
    with stop_on_signals() as signals, signals_held(), claim, locked:
        record.begin()
        with record.metrics, record.bar:
            record.keep()
            try:
                yield record
            except KeyboardInterrupt:
                record.status, record.stopped = "stopped", signals.asked
        record.end()


class Recording:
    """A recording writes the files of a run: metrics, checkpoints, and at the end the pictures.

    Attributes:
        spare: path of the pastiche if `picture` cannot be written.
        written: names of the files that the run may write in its folder.
        goes_on: whether resume=auto and the folder holds a begun run, which is then resumed.
        picture: path of the pastiche. `end` sets it to `spare` if the given path cannot be written,
            or if the run gave up and a file exists at the given path.
        outcome: result of the run, set by `end`.
        seconds: duration of the optimisation, without `clock_stopped` blocks, set by `end`.
        status: running, stopped (by a signal or by `stop_after`), gave up or finished.
        stopped: the signal that stopped the run, or None.
        output_hash: SHA-256 of the picture that this run, or the run that it continues, has
            written; None if there is none. If the file at `picture` has this hash, a resumed run
            may replace it.
        problem: why the run gave up, or why `picture` is `spare`, in one line; else None.
    """

    outcome: Outcome
    output_hash: str | None
    seconds: float
    stopped: Stopped | None

    def __init__(self, run: Run, config: TrainConfig, folder: Path) -> None:
        self.run, self.config, self.folder = run, config, folder
        self.picture = Path(config.output) if config.output else folder / PASTICHE
        self.spare = folder / f"pastiche{self.picture.suffix}"
        self.written = names_of(config)
        is_begun = (folder / RECORD).exists() or (folder / CHECKPOINT).exists()
        self.goes_on = config.resume == "auto" and is_begun
        self.output_hash = None
        if self.goes_on:
            with suppress(UserError):  # there may be a checkpoint without run.json
                self.output_hash = read_run(folder).output_hash
        self.recipe = _describe(config, run.job)
        self.checkpoint = Checkpoint(folder / CHECKPOINT, config.checkpoint_every)
        self.status, self.stopped = "running", None
        self.problem: str | None = None

    def begin(self) -> None:
        """Continue the run from its checkpoint, if any; start progress bar, metrics and clock."""
        # Seconds of earlier processes, minus those that this one spends in `clock_stopped` blocks.
        self._before = 0.0
        if self.checkpoint.exists():
            self._load()
        self.metrics = Metrics(self.folder / METRICS, self.run.at.steps)
        self.bar = ProgressBar(self.run.at.steps)
        self._start = time.perf_counter()

    def __call__(self, iterate: Iterate) -> None:
        """Record a step, save a checkpoint if due, raise KeyboardInterrupt after `stop_after`."""
        self.bar(iterate)
        self.metrics(iterate)
        if self.checkpoint.is_due():
            self._save()
        if iterate.step == self.config.stop_after:
            raise KeyboardInterrupt

    @contextmanager
    def clock_stopped(self) -> Iterator[None]:
        """Leave the time of the `with` block out of `seconds`."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self._before -= time.perf_counter() - start

    def steer(self, config: TrainConfig) -> None:
        """Continue from the best picture so far with new settings, and record them.

        (UserError if the settings cannot work; the run is then unchanged.)
        """
        job = prepare(config, outputs=files_written(config, self.folder), like=self.run.job)
        recipe_now = _describe(config, job) | {"steered": True}
        self.run.steer(job)
        self.config, self.recipe = config, recipe_now
        # The checkpoint is removed first: a killed process must not leave a checkpoint with the
        # old settings beside a run.json with the new ones.
        self.checkpoint.remove()
        self.keep()
        if self.checkpoint.every:
            self._save()

    def keep(self, **known: float) -> bool:
        """Write `run.json` with the values `known` so far; return whether that succeeded."""
        known_hash = {"picture_sha256": self.output_hash}
        return write_record(
            self.folder, self.recipe, self.status, self.picture, **known_hash, **known
        )

    def end(self) -> None:
        """Write the pictures, `run.json` and, if the run was stopped, a checkpoint."""
        self.seconds, self.outcome = self._seconds(), self.run.result()
        result = self.outcome
        self.recipe["config"]["captured"] = result.captured  # whether graphs were used
        stopped = [override("stop_after", result.steps)] if self.status == "stopped" else []
        xmp = metadata("train", self.recipe, *stopped) if self.config.recipe else b""
        if result.problem is not None and self.picture.exists():  # do not replace a good picture
            self.picture = self.spare
        self.problem = result.problem
        self._write(result.picture, xmp)
        if self.status != "stopped":
            self.status = "finished" if self.problem is None else "gave up"
        elif self.config.checkpoint_every:
            self._save()
        known = {"seconds": self.seconds, "steps": result.steps}
        self.output_hash = sha256(self.picture)
        is_kept = self.keep(**known)
        # The checkpoint is removed last: until then the run can be resumed, if the process is
        # killed or the disk is too full for run.json.
        if is_kept and self.status == "finished":
            self.checkpoint.remove()

    def _write(self, image: Tensor, xmp: bytes) -> None:
        """Write the pastiche (1, 3, H, W), and lossless copies of it and the content for `mix`."""
        pictures = self.run.job.pictures
        try:
            images.write(self.picture, image, pictures.alpha, xmp=xmp)
        except UserError as error:
            if self.picture == self.spare:
                raise
            images.write(self.spare, image, pictures.alpha, xmp=xmp)
            self.problem = self.problem or f"{error}; the picture is at {self.spare} instead"
            self.picture = self.spare
        depth = images.BIT_DEPTHS[self.picture.suffix.lower()]
        try:
            for name, rgb, text in ((CONTENT, pictures.content, b""), (PASTICHE, image, xmp)):
                path = self.folder / name
                if not (path.exists() and path.samefile(self.picture)):
                    images.write(path, rgb, pictures.alpha, bit_depth=depth, xmp=text)
            if self.config.content_regions == "auto":
                styles = [part.style + 1 for part in pictures.regions[0].sources]
                names = [CONTENT_REGIONS, *(f"{STYLE_REGIONS}/{number}.png" for number in styles)]
                found = label_pictures(pictures.regions)
                # `found` has no entry for `style_detail`, which is not divided into regions.
                for name, labels in zip(names, found, strict=False):
                    images.write(self.folder / name, labels)
        except UserError as error:
            logger.warning("%s; going on without", error)

    def _load(self) -> None:
        saved = self.checkpoint.load(self.run.job.device)
        with refused(f"{self.checkpoint.path} is no run's checkpoint; start afresh"):
            check_recipe(saved["description"], self.recipe, FREE_KEYS)
            if saved["description"].get("steered") is True:
                self.recipe["steered"] = True
            self.run.load_state_dict(saved["run"])
            check_like(saved["seconds"], 0.0)
            self._before = float(saved["seconds"])
        logger.info("going on from step %d of %d", self.run.at.steps, self.run.at.planned)

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
        return round(self._before + time.perf_counter() - self._start, 1)


def _describe(config: TrainConfig, job: Job) -> Recipe:
    """Return the recipe of a job's pastiche (UserError if an input file cannot be read)."""
    config = replace(config, captured=job.captured)
    return recipe(config, FREE_KEYS, job.files, job.device, precision=job.precision)
