"""What a run would do, how much memory and how long it would take, without doing it."""

import time
from dataclasses import dataclass, replace

import torch

from styletransfer.job.job import Job
from styletransfer.job.layout import choose_layout
from styletransfer.job.memory import Memory, relative_work
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
        width: of the picture in pixels.
        height: of the picture in pixels.
        steps: to be made at this scale.
        tile: side in pixels, or None for the whole picture at once.
        bands: that each process takes in turn.
        history: pairs that L-BFGS keeps; 0 for another optimiser.
        memory: estimated peak in bytes, of one process, by purpose.
        seconds: estimated.
    """

    width: int
    height: int
    steps: int
    tile: int | None
    bands: int
    history: int
    memory: Memory
    seconds: float


@dataclass(frozen=True)
class Plan:
    """A run before it is made. As a string: a few lines for a person.

    Attributes:
        scales: coarse to fine.
        device: where it would run, such as "cpu".
        precision: of the network, such as "bfloat16".
        loss_mode: its name.
        optimizer: its name.
        free: bytes of memory that the device has left.
    """

    scales: list[ScalePlan]
    device: str
    precision: str
    loss_mode: str
    optimizer: str
    free: float

    @property
    def memory(self) -> float:
        """Estimated peak in bytes, above what the loaded process takes."""
        return max(scale.memory.total for scale in self.scales)

    @property
    def seconds(self) -> float:
        """Estimated time of the optimisation."""
        return sum(scale.seconds for scale in self.scales)

    def __str__(self) -> str:
        lines = [f"{self.device}, {self.precision}, {self.loss_mode}, {self.optimizer}"]
        for scale in self.scales:
            tile = "whole" if scale.tile is None else f"tiles of {scale.tile} px"
            tile += f" in {scale.bands} bands" if scale.bands > 1 else ""
            history = f", history {scale.history}" if scale.history else ""
            lines.append(
                f"{scale.width} x {scale.height}: {scale.steps} steps, {tile}{history}, "
                f"about {readable(scale.memory.total)}, {scale.seconds:.1f} s"
            )
        free = "" if self.free == float("inf") else f" of {readable(self.free)} free"
        lines.append(f"in all about {self.seconds:.1f} s and {readable(self.memory)}{free}")
        return "\n".join(lines)


def plan(job: Job) -> Plan:
    """Plan a run: choose what it would choose now, and time a few steps on a small picture.

    Nothing is written. The times take every scale's steps to cost as much per pixel as those of
    the small picture; snapshots and the like are left out.
    """
    free = free_bytes(job.device)
    per_pixel = _seconds_per_pixel(job)
    scales = []
    for scale in job.scales:
        layout = choose_layout(job, scale, free)
        height, width = scale.size
        work = relative_work(
            job.extractor, job.config, scale.size, layout.tile, layout.bands, job.processes.count
        )
        scales.append(
            ScalePlan(
                width=width,
                height=height,
                steps=scale.steps,
                tile=layout.tile,
                bands=layout.bands,
                history=layout.history if job.config.optimizer.name == "lbfgs" else 0,
                memory=layout.memory,
                # Each scale ends with one evaluation more.
                seconds=per_pixel * height * width * work * (scale.steps + 1),
            )
        )
    return Plan(
        scales=scales,
        device=str(job.device),
        precision=job.precision,
        loss_mode=job.mode.name,
        optimizer=job.config.optimizer.name,
        free=free,
    )


def _seconds_per_pixel(job: Job) -> float:
    """Return the seconds of one step over the pixels of its picture, measured on noise."""
    least = smallest_tile(job.extractor, job.config.objective)
    side = max(least, min(job.config.size, CALIBRATION_SIZE))
    generator = torch.Generator().manual_seed(0)
    noise = job.on_device(torch.rand(1, 3, side, side, generator=generator))
    styles, square = len(job.pictures.styles), (side, side)
    pictures = replace(job.pictures.to(noise), content=noise, styles=(noise.flip(3),) * styles)
    pictures = pictures.resized(square, [square] * styles)
    objective = make_objective(
        job.extractor, job.mode, job.config.objective, pictures, styles=None, tile=None
    )
    descent = Descent(objective, noise.flip(2), job.config.optimizer)
    began = 0.0
    for step, (losses, _) in enumerate(descent.run(1 + CALIBRATION_STEPS)):
        losses.total.item()  # waits for the device
        if step == 0:
            began = time.perf_counter()
    return (time.perf_counter() - began) / CALIBRATION_STEPS / side**2
