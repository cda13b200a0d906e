"""What a run would do, how much memory and how long it would take, without doing it."""

import time
from dataclasses import dataclass, replace

import torch

from styletransfer.job.job import Job
from styletransfer.job.layout import MemoryLayout, choose_layout
from styletransfer.job.memory import Prediction
from styletransfer.job.schedule import Scale
from styletransfer.objective.limits import smallest_tile
from styletransfer.objective.resilient import make_objective
from styletransfer.optimize.descent import Descent
from styletransfer.system.memory import free_bytes, readable

# Longer side in pixels of the picture on which a few steps are timed.
CALIBRATION_SIZE = 256
CALIBRATION_STEPS = 2


@dataclass(frozen=True)
class ScalePlan:
    """One level of the pyramid.

    Attributes:
        scale: its size and steps.
        layout: tile, bands, history and memory of one process.
        seconds: estimated.
    """

    scale: Scale
    layout: MemoryLayout
    seconds: float


@dataclass(frozen=True)
class Plan:
    """A run before it is made. As a string: a few lines for a person.

    Attributes:
        job: what would be done.
        scales: coarse to fine.
        free: bytes of memory that the device has left.
    """

    job: Job
    scales: list[ScalePlan]
    free: float

    @property
    def memory(self) -> float:
        """Estimated peak in bytes, above what the loaded process takes."""
        return max(planned.layout.memory.total for planned in self.scales)

    @property
    def seconds(self) -> float:
        """Estimated time of the optimisation."""
        return sum(planned.seconds for planned in self.scales)

    def __str__(self) -> str:
        job, optimizer = self.job, self.job.config.optimizer.name
        lines = [f"{job.device}, {job.precision}, {job.mode.name}, {optimizer}"]
        for planned in self.scales:
            layout, (height, width) = planned.layout, planned.scale.size
            tile = "whole" if layout.tile is None else f"tiles of {layout.tile} px"
            tile += f" in {layout.bands} bands" if layout.bands > 1 else ""
            history = f", history {layout.history}" if optimizer == "lbfgs" else ""
            lines.append(
                f"{width} x {height}: {planned.scale.steps} steps, {tile}{history}, "
                f"about {readable(layout.memory.total)}, {planned.seconds:.1f} s"
            )
        free = "" if self.free == float("inf") else f" of {readable(self.free)} free"
        lines.append(f"in all about {self.seconds:.1f} s and {readable(self.memory)}{free}")
        return "\n".join(lines)


def plan(job: Job) -> Plan:
    """Plan a run: choose what it would choose now, and time a few steps on a small picture.

    Nothing is written. The times take every scale's steps to cost as much per pixel as those of
    the small picture; snapshots and the like are left out.
    """
    free, per_pixel = free_bytes(job.device), _seconds_per_pixel(job)
    scales = []
    for scale in job.scales:
        layout = choose_layout(job, scale, free)
        work = Prediction(job, scale).work(layout.tile, layout.bands)
        evaluations = scale.steps + 1  # each scale ends with one more
        seconds = per_pixel * scale.size[0] * scale.size[1] * work * evaluations
        scales.append(ScalePlan(scale, layout, seconds))
    return Plan(job, scales, free)


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
