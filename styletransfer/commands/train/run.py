"""One run: a config and a folder in, a pastiche with its metrics out."""

import logging
import math
import os
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from styletransfer.commands.train.record import check_same, describe
from styletransfer.config import TrainConfig
from styletransfer.errors import UserError
from styletransfer.optimize.callbacks import Metrics, ProgressBar, Snapshots, tolerated
from styletransfer.optimize.job import Job
from styletransfer.optimize.prepare import check_output, prepare
from styletransfer.optimize.results import Callback, Iterate, Result
from styletransfer.optimize.run import Run
from styletransfer.pictures import images
from styletransfer.system.checkpoint import Checkpoint
from styletransfer.system.files import check_folder, remove_stale
from styletransfer.system.lock import locked
from styletransfer.system.run_folder import CONTENT, METRICS, PASTICHE, RECORD, write_record
from styletransfer.system.signals import Stopped, held, stop_on_signals

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Outcome:
    """What a run leaves behind.

    Attributes:
        picture: the file that holds the pastiche.
        result: the pastiche in memory, its losses, and how the run ended.
        seconds: wall time of the optimisation, from where it went on.
        device: where it ran, such as "cpu".
        precision: of the network, such as "bfloat16".
        problem: one line saying why it gave up or where else the picture is, or None.
        stopped: the signal that has come meanwhile, or None.
    """

    picture: Path
    result: Result
    seconds: float
    device: str
    precision: str
    problem: str | None = None
    stopped: Stopped | None = None


def train(config: TrainConfig, folder: Path) -> Outcome:
    """Stylise one picture and write it, with `metrics.jsonl` and snapshots, into `folder`.

    The pastiche goes to `config.output` if that is set, and to `folder/pastiche.png`, beside the
    content at its size: what `mix` mixes. A run that ends early leaves the best picture so far
    there, and a checkpoint; with `resume=auto` it goes on from the checkpoint in `folder` where
    there is one.

    Raises:
        UserError: bad input, before anything is written; or the picture cannot be written anywhere.
        Stopped: a signal came before there was a picture.
    """
    if config.snapshot_every < 0:
        raise UserError(f"snapshot_every={config.snapshot_every} must be 0 or more")
    if not 0 <= config.checkpoint_every < math.inf:
        raise UserError(f"checkpoint_every={config.checkpoint_every} must be 0 seconds or more")
    with stop_on_signals() as stop:
        job = prepare(config)
        picture = Path(config.output) if config.output else folder / PASTICHE
        for path in (picture, folder / PASTICHE, folder / CONTENT):
            check_output(str(path), config)
        if os.path.realpath(picture) == os.path.realpath(folder / CONTENT):
            raise UserError(f"output={picture}: there the run keeps its content; choose another")
        check_folder(folder / RECORD)
        folder.mkdir(parents=True, exist_ok=True)
        # Held from here: the first optimiser makes torch import libraries that abort the process if
        # a signal's exception crosses them.
        with held(), locked(folder):
            remove_stale(folder)
            work = _Work(job, config, folder, picture)
            with ExitStack() as watchers:
                began = time.perf_counter()
                result = work.run.complete(work.callbacks(watchers))
                seconds = time.perf_counter() - began
                picture, problem = work.leave(result)  # before anything else can go wrong
            asked = stop.asked
    return Outcome(
        picture=picture,
        result=result,
        seconds=seconds,
        device=str(job.device),
        precision=job.precision,
        problem=result.problem or problem,
        stopped=asked,
    )


class _Work:
    """A run with its folder and its checkpoint, which it goes on from if it should."""

    def __init__(self, job: Job, config: TrainConfig, folder: Path, picture: Path) -> None:
        self.config, self.folder, self.picture = config, folder, picture
        self.job, self.run, self.description = job, Run(job), describe(job)
        self.checkpoint = Checkpoint(folder / "checkpoint.pt", config.checkpoint_every)
        self.began, self.before = time.perf_counter(), 0.0
        if config.resume == "auto" and self.checkpoint.exists():
            saved = self.checkpoint.load()
            try:
                check_same(saved["description"], self.description)
                self.run.load_state_dict(saved["run"])
                self.before = saved["seconds"]
            except (LookupError, TypeError, AttributeError, ValueError) as error:
                path = self.checkpoint.path
                raise UserError(f"{path} is no run's checkpoint; start afresh") from error
            logger.info("going on from step %d of %d", self.run.steps, config.steps)
        else:
            self.checkpoint.remove()

    def callbacks(self, watchers: ExitStack) -> list[Callback]:
        """Return what watches the run; `watchers` closes it."""
        write_record(self.folder, self.description, "running", self.picture)
        done, every = self.run.steps, self.config.snapshot_every
        self.began = time.perf_counter()
        self.metrics = watchers.enter_context(Metrics(self.folder / METRICS, done))
        found: list[Callback] = [watchers.enter_context(ProgressBar(done)), self.metrics]
        if every:
            found.append(tolerated(Snapshots(self.folder / "snapshots", every)))
        return [*found, self._save_if_due]

    def _save_if_due(self, iterate: Iterate) -> None:
        if self.checkpoint.is_due():
            self._save()

    def _save(self) -> None:
        self.metrics.flush()
        state = {
            "description": self.description,
            "run": self.run.state_dict(),
            "seconds": self._seconds(),
        }
        self.checkpoint.try_to_save(state)

    def _seconds(self) -> float:
        """Return the time of optimisation so far, that before a checkpoint included."""
        return round(self.before + time.perf_counter() - self.began, 1)

    def leave(self, result: Result) -> tuple[Path, str | None]:
        """Write the pictures and the checkpoint, or remove the one that is no longer needed."""
        seconds = self._seconds()
        pastiche = result.picture
        picture, problem = write_picture(self.picture, self.folder, pastiche, self.job.alpha)
        self._keep(picture, pastiche)
        status = "finished"
        if result.interrupted:
            status = "stopped"
            if self.config.checkpoint_every:
                self._save()
        elif result.problem is not None or problem is not None:
            status = "gave up"
        write_record(self.folder, self.description, status, picture, seconds)
        if status == "finished":  # and said so, lest a kill in between costs the whole run
            self.checkpoint.remove()
        return picture, problem

    def _keep(self, picture: Path, image: Tensor) -> None:
        """Keep the pastiche and its content in the folder, without loss, for `mix`."""
        depth = images.BIT_DEPTHS[picture.suffix.lower()][0]
        kept = {CONTENT: self.job.pictures.content, PASTICHE: image}
        try:
            for path, rgb in ((self.folder / name, rgb) for name, rgb in kept.items()):
                if not (path.exists() and path.samefile(picture)):
                    images.write(path, rgb, self.job.alpha, bit_depth=depth)
        except UserError as error:
            logger.warning("%s; going on without", error)


def write_picture(
    path: Path, folder: Path, image: Tensor, alpha: Tensor | None
) -> tuple[Path, str | None]:
    """Write the pastiche to `path`; or into `folder`, or among the system's temporary files.

    Returns:
        Where it is, and one line if that is not `path`.

    Raises:
        UserError: it cannot be written anywhere.
    """
    try:
        images.write(path, image, alpha)
        return path, None
    except UserError as error:
        first = error
    name = f"pastiche{path.suffix}"
    for where in (folder, Path(tempfile.gettempdir()) / f"styletransfer-{time.time_ns()}"):
        if where / name == path:
            continue
        try:
            images.write(where / name, image, alpha)
        except UserError:
            continue
        return where / name, f"{first}; the picture is at {where / name} instead"
    raise first
