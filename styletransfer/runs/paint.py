"""One run: a config and a folder in, a pastiche with its metrics out; by one process or several.

Or its plan: what it would do, how much memory and how long it would take, without doing it.
"""

import math
import os
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from styletransfer.errors import LostProcessError, UserError
from styletransfer.job.job import Job
from styletransfer.job.load import files_read
from styletransfer.job.memory import Prediction
from styletransfer.job.prepare import choose_layout, prepare
from styletransfer.objective.criterion import smallest_tile
from styletransfer.objective.resilient import make_objective
from styletransfer.optimize.descent import Descent
from styletransfer.optimize.results import Outcome
from styletransfer.optimize.run import Run
from styletransfer.runs.folder import CONTENT, FREE_KEYS, PASTICHE, RECORD
from styletransfer.runs.recipe import settings
from styletransfer.runs.recorded_run import Guide, RecordedRun, describe
from styletransfer.settings import TrainConfig
from styletransfer.settings.values import in_turn
from styletransfer.system.files import check_outputs, locked, remove_stale
from styletransfer.system.memory import free_bytes, readable
from styletransfer.system.processes import Processes
from styletransfer.system.signals import Stopped, deaf, signals_held, stop_on_signals

# Longer side in pixels of the picture on which a few steps are timed.
CALIBRATION_SIZE = 256
CALIBRATION_STEPS = 2


@dataclass(frozen=True)
class FinishedRun:
    """What a run leaves behind."""

    picture: Path  # the file that holds the pastiche
    result: Outcome
    seconds: float  # wall time of the optimisation, from where it went on
    device: str
    precision: str
    problem: str | None = None  # why it gave up or where else the picture is, in one line
    stopped: Stopped | None = None  # the signal that has come meanwhile


def paint(
    config: TrainConfig,
    folder: Path,
    guide: Guide | None = None,
    processes: Processes | None = None,
) -> FinishedRun:
    """Stylise one picture and write it, with `metrics.jsonl` and snapshots, into `folder`.

    The pastiche goes to `config.output` if that is set, and to `folder/pastiche.png`, beside the
    content at its size: what `mix` mixes. A run that ends early leaves the best picture so far
    there, and a checkpoint; with `resume=auto` it goes on from the checkpoint in `folder` where
    there is one. Of the `processes` that share it this is the first, and the others `assist`.
    (UserError: bad input, before anything is written; or the picture cannot be written anywhere;
    Stopped: a signal came before there was a picture.)
    """
    with stop_on_signals() as stop:
        picture = Path(config.output) if config.output else folder / PASTICHE
        job = _checked(config, folder, picture, processes)
        folder.mkdir(parents=True, exist_ok=True)
        # Held from here: the first optimiser makes torch import libraries that abort the process if
        # a signal's exception crosses them.
        with signals_held(), locked(folder):
            remove_stale(folder)
            run, began = RecordedRun(config, job, folder, picture), time.perf_counter()
            result, picture, problem = run.complete(guide)
            seconds, stopped = time.perf_counter() - began, stop.asked
    problem = result.problem or problem
    return FinishedRun(picture, result, seconds, str(job.device), job.precision, problem, stopped)


def assist(config: TrainConfig, processes: Processes) -> None:
    """Make the steps of the first process, and end when it ends.

    A signal is told to all before the next evaluation, and raises Stopped. The first process may
    leave one at any point when it receives a signal itself, and the others notice. (UserError: bad
    input; or another process has ended before the work was done.)
    """
    with stop_on_signals() as stop:
        job = prepare(replace(config, output=None), processes=processes)
        _check_alike(config, job)
        run = Run(job)
        try:
            state = processes.first(lambda: None)
        except LostProcessError:
            sys.exit(1)  # the first one has said why
        if state is not None:
            run.load_state_dict(state)
        try:
            with deaf():
                result = run.complete()
        except LostProcessError:
            if stop.asked is None:
                raise
        else:
            if result.interrupted:  # torchrun ends all when one ends: the first is to write before
                with deaf(), suppress(LostProcessError):
                    processes.first(lambda: None)
        if stop.asked is not None:
            raise stop.asked


def check_given(config: TrainConfig, processes: Processes) -> None:
    """Check that all processes were given the same settings, but for what changes no pixel.

    (UserError: a key differs, which it names; or the run is to change or stop on the way.)
    """
    for key in ("changes", "stop_after"):
        if processes.count > 1 and getattr(config, key):
            raise UserError(f"{key}= needs a single process; start it without torchrun")
    values = settings(config, FREE_KEYS)
    processes.check_equal({key: values[key] for key in values if key not in FREE_KEYS})


def _check_alike(config: TrainConfig, job: Job) -> None:
    """Check that all processes have the same files and compute alike."""
    if job.processes.count > 1:  # hashes of files take their time
        recipe = describe(config, job)
        keys = ("files", "precision", "torch", "threads")
        job.processes.check_equal({key: recipe[key] for key in keys})


def _checked(
    config: TrainConfig, folder: Path, picture: Path, processes: Processes | None = None
) -> Job:
    """Return the job of a run that has all it needs, its changes and places included."""
    for key in ("snapshot_every", "stop_after"):
        if getattr(config, key) < 0:
            raise UserError(f"{key}={getattr(config, key)} must be 0 or more")
    if not 0 <= config.checkpoint_every < math.inf:
        raise UserError(f"checkpoint_every={config.checkpoint_every} must be 0 seconds or more")
    later = in_turn(config, config.changes)
    job = prepare(config, processes=processes)
    _check_alike(config, job)
    for changed in later:
        prepare(changed, like=job)
    kept = [folder / name for name in (PASTICHE, CONTENT, RECORD)]
    if os.path.realpath(picture) == os.path.realpath(folder / PASTICHE):
        kept.remove(folder / PASTICHE)
    read = [file for settings in (config, *later) for file in files_read(settings)]
    check_outputs([picture, *kept], read)
    return job


def plan(job: Job) -> str:
    """Return in a few lines what a run would choose now, its memory and its time.

    The times take every scale's steps to cost as much per pixel as those of a small picture, which
    are made; matching, two seconds at 512 pixels, snapshots and the like are left out.
    """
    free, per_pixel = free_bytes(job.device), _seconds_per_pixel(job)
    optimizer, peak, total = job.config.optimizer.name, 0.0, 0.0
    lines = [f"{job.device}, {job.precision}, {job.mode.name}, {optimizer}"]
    for scale in job.scales:
        layout, (height, width) = choose_layout(job, scale, free), scale.size
        work = Prediction(job, scale).work(layout.tile, layout.bands)
        seconds = per_pixel * height * width * work * (scale.steps + 1)  # the last look included
        peak, total = max(peak, layout.memory.total), total + seconds
        tile = "whole" if layout.tile is None else f"tiles of {layout.tile} px"
        tile += f" in {layout.bands} bands" if layout.bands > 1 else ""
        history = f", history {layout.history}" if optimizer == "lbfgs" else ""
        lines.append(
            f"{width} x {height}: {scale.steps} steps, {tile}{history}, "
            f"about {readable(layout.memory.total)}, {seconds:.1f} s"
        )
    left = "" if free == float("inf") else f" of {readable(free)} free"
    return "\n".join([*lines, f"in all about {total:.1f} s and {readable(peak)}{left}"])


def _seconds_per_pixel(job: Job) -> float:
    """Return the seconds of one step over the pixels of its picture, measured on noise."""
    side = max(smallest_tile(job.extractor, job.criterion), min(job.config.size, CALIBRATION_SIZE))
    generator = torch.Generator().manual_seed(0)
    noise = job.on_device(torch.rand(1, 3, side, side, generator=generator))
    styles, square = len(job.pictures.styles), (side, side)
    pictures = replace(job.pictures.to(noise), content=noise, styles=(noise.flip(3),) * styles)
    pictures = pictures.resized(square, [square] * styles)
    objective = make_objective(
        job.extractor, job.mode, job.criterion, pictures, styles=None, tile=None
    )
    descent = Descent(objective, noise.flip(2), job.config.optimizer)
    steps = descent.run(1 + CALIBRATION_STEPS)
    next(steps)[0].total.item()  # waits for the device
    began = time.perf_counter()
    for losses, _ in steps:
        losses.total.item()
    return (time.perf_counter() - began) / CALIBRATION_STEPS / side**2
