"""One run: a config and a folder in, a pastiche with its metrics out.

Or its plan: what it would do, how much memory and how long it would take, without doing it.
"""

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from styletransfer.job.job import Job
from styletransfer.job.load import files_read
from styletransfer.job.memory import plan_memory
from styletransfer.job.prepare import prepare
from styletransfer.objective.criterion import smallest_tile
from styletransfer.objective.resilient import make_objective
from styletransfer.optimize.descent import Descent
from styletransfer.optimize.results import Outcome
from styletransfer.runs.changes import in_turn
from styletransfer.runs.folder import CONTENT, PASTICHE, RECORD
from styletransfer.runs.recorded_run import Guide, RecordedRun
from styletransfer.settings import TrainConfig
from styletransfer.system.files import check_outputs, locked, remove_stale
from styletransfer.system.memory import free_bytes, readable
from styletransfer.system.signals import Stopped, signals_held, stop_on_signals

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
) -> FinishedRun:
    """Stylise one picture and write it, with `metrics.jsonl` and snapshots, into `folder`.

    The pastiche goes to `config.output` if that is set, and to `folder/pastiche.png`, beside the
    content at its size: what `mix` mixes. A run that ends early leaves the best picture so far
    there, and a checkpoint; with `resume=auto` it goes on from the checkpoint in `folder` where
    there is one. (UserError: bad input, before anything is written, or the picture can be
    written nowhere; Stopped: a signal came before there was a picture.)
    """
    with stop_on_signals() as stop:
        picture = Path(config.output) if config.output else folder / PASTICHE
        job = _checked(config, folder, picture)
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


def _checked(config: TrainConfig, folder: Path, picture: Path) -> Job:
    """Return the job of a run that has all it needs, its changes and places included."""
    later = in_turn(config, config.changes)
    job = prepare(config)
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
        memory, (height, width) = plan_memory(job, scale, free), scale.size
        # One evaluation more than steps: the last picture is evaluated as well.
        seconds = per_pixel * height * width * memory.work * (scale.steps + 1)
        peak, total = max(peak, memory.bytes), total + seconds
        tile = "whole" if memory.tile is None else f"tiles of {memory.tile} px"
        lines.append(
            f"{width} x {height}: {scale.steps} steps, {tile}, "
            f"about {readable(memory.bytes)}, {seconds:.1f} s"
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
