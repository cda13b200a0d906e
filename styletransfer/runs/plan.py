"""The plan of a run: its scales, with estimates of their memory and time."""

import time
from dataclasses import replace

import torch

from styletransfer.job.job import Job
from styletransfer.job.memory import plan_memory
from styletransfer.objective.criterion import smallest_tile
from styletransfer.optimize.descent import Descent
from styletransfer.optimize.run import make_objective
from styletransfer.system.memory import free_bytes, readable

# Side in pixels of the square noise picture for timing, at most; number of timed steps.
CALIBRATION_SIZE = 256
CALIBRATION_STEPS = 2


def plan(job: Job) -> str:
    """Return a few lines of text: the scales of a run, with their memory and time.

    Each time assumes that a step costs as much per pixel as a step on a small picture, which is
    measured. Matching (two seconds at 512 pixels), snapshots and the like are not included.
    """
    free, per_pixel = free_bytes(job.device), _seconds_per_pixel(job)
    optimizer, peak, total = job.config.optimizer.name, 0.0, 0.0
    lines = [f"{job.device}, {job.precision}, {job.mode.name}, {optimizer}"]
    for scale in job.scales:
        memory, (height, width) = plan_memory(job, scale, free), scale.size
        # One evaluation more than steps, because the last picture is evaluated too.
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
    """Return the seconds of one step per pixel, measured on a picture of noise."""
    side = max(smallest_tile(job.extractor, job.criterion), min(job.config.size, CALIBRATION_SIZE))
    generator = torch.Generator().manual_seed(0)
    noise = job.on_device(torch.rand(1, 3, side, side, generator=generator))
    styles, square = len(job.pictures.styles), (side, side)
    pictures = replace(job.pictures.to(noise), content=noise, styles=(noise.flip(3),) * styles)
    pictures = pictures.resized(square, [square] * styles)
    objective = make_objective(replace(job, styles=None), pictures, tile=None)
    descent = Descent(objective, noise.flip(2), job.config.optimizer)
    steps = descent.run(1 + CALIBRATION_STEPS)
    next(steps)[0].total.item()  # warm-up; waits for the device
    start = time.perf_counter()
    for losses, _ in steps:
        losses.total.item()
    return (time.perf_counter() - start) / CALIBRATION_STEPS / side**2
