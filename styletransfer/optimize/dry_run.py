"""What a run would do, how much memory and how long it would take, without doing it."""

import time
from dataclasses import replace

import torch

from styletransfer.job.job import Job
from styletransfer.job.layout import choose_layout
from styletransfer.job.memory import Prediction
from styletransfer.objective.criterion import smallest_tile
from styletransfer.objective.resilient import make_objective
from styletransfer.optimize.descent import Descent
from styletransfer.system.memory import free_bytes, readable

# Longer side in pixels of the picture on which a few steps are timed.
CALIBRATION_SIZE = 256
CALIBRATION_STEPS = 2


def plan(job: Job) -> str:
    """Return in a few lines what a run would choose now, its memory and its time.

    The times take every scale's steps to cost as much per pixel as those of a small picture, which
    are made; snapshots and the like are left out.
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
    began = 0.0
    for step, (losses, _) in enumerate(descent.run(1 + CALIBRATION_STEPS)):
        losses.total.item()  # waits for the device
        if step == 0:
            began = time.perf_counter()
    return (time.perf_counter() - began) / CALIBRATION_STEPS / side**2
