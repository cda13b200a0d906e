"""How soon the default job is as good as the plain loop, which judges both."""

import logging
import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from styletransfer.commands.benchmark.reference import (
    SCALE,
    MakeReference,
    Reference,
    make_reference,
)
from styletransfer.commands.benchmark.results import Quality
from styletransfer.commands.benchmark.rows import build_network, default_config
from styletransfer.config import BenchmarkConfig, FeaturesConfig
from styletransfer.errors import UserError
from styletransfer.job.job import Job
from styletransfer.job.prepare import prepare
from styletransfer.optimize.results import Iterate, Outcome
from styletransfer.optimize.run import Run, complete_run
from styletransfer.system.measure import now

logger = logging.getLogger(__name__)

# The job's pictures at full size are judged this many steps apart.
STEPS_BETWEEN_PICTURES = 5
JOB = "the default job"
# Steps of the second half of experiment=relay over those of its first.
RELAY = 0.84


@dataclass(frozen=True)
class PlainRun:
    """The plain loop, run to its end.

    Attributes:
        reference: the loop, which holds its last picture.
        losses: its objective at each evaluation, in units of the package's weights.
        seconds: of all evaluations.
        target: the lowest of the losses.
        best: the number, from 1, of the evaluation that met it.
    """

    reference: Reference
    losses: list[float]
    seconds: float
    target: float
    best: int

    @property
    def seconds_until_best(self) -> float:
        """Seconds until the target was met: all evaluations cost the same."""
        return self.seconds * self.best / len(self.losses)

    @torch.no_grad()
    def judge(self, picture: Tensor) -> float:
        """Return the plain loop's objective at a picture (1, 3, H, W) of its size."""
        return self.reference.objective(picture).item() / SCALE


@dataclass(frozen=True)
class JobRun:
    """The default job, run to its end.

    Attributes:
        result: how it ended.
        seconds: of the whole run.
        pictures: (step, seconds until then, picture) at full size, the result last.
    """

    result: Outcome
    seconds: float
    pictures: list[tuple[int, float, Tensor]]


def measure_quality(config: BenchmarkConfig, make: MakeReference) -> Quality:
    """Run the plain loop, then the default job, and find when the job was as good.

    The target is the lowest objective that the plain loop met, and its time the time until then:
    without a line search its last evaluation need not be its best. Loading the network and the
    pictures is counted for neither; making the targets is counted for the job alone. The job's
    pictures are kept while it runs and judged afterwards, so that judging costs it no time. Where
    precision=auto is not float32, the job is run in float32 as well. Last it is run once more,
    begun by the bundled network.

    Args:
        config: `quality_size`, `quality_steps` and `steps`.
        make: the plain loop.

    Raises:
        UserError: bad input, a job that gave up, or a plain loop that was never finite.
    """
    ready = prepare(replace(default_config(config, config.quality_size), precision="auto"))
    plain = run_plain(config, make, ready)
    job = run_default_job(ready)
    twin: Outcome | None = None
    if ready.extractor.dtype != torch.float32:
        logger.info("default job in float32")
        twin = complete_run(prepare(replace(ready.config, precision="float32"))).finished(JOB)
    relay = None if ready.config.features.name == "bundled" else run_relay(ready)
    reached = next((each for each in job.pictures if plain.judge(each[2]) <= plain.target), None)
    plain_final = plain.judge(plain.reference.picture)
    picture = job.pictures[-1][2]
    return Quality(
        width=picture.shape[3],
        height=picture.shape[2],
        ratio=None if reached is None else reached[1] / plain.seconds_until_best,
        seconds=None if reached is None else reached[1],
        plain_seconds=plain.seconds_until_best,
        target=plain.target,
        plain_evaluations=len(plain.losses),
        plain_best_evaluation=plain.best,
        plain_final=plain_final if math.isfinite(plain_final) else None,
        job_evaluations=job.result.steps if reached is None else reached[0],
        job_steps=config.steps,
        job_total_seconds=job.seconds,
        job_final=plain.judge(picture),
        float32_final=None if twin is None else plain.judge(twin.image.to(picture.device)),
        job_precision=ready.precision,
        relay_seconds=None if relay is None else relay[1],
        relay_final=None if relay is None else plain.judge(relay[0].to(picture.device)),
    )


def run_plain(config: BenchmarkConfig, make: MakeReference, ready: Job) -> PlainRun:
    """Run the plain loop on the pictures as the job has them at its last scale.

    Raises:
        UserError: the plain loop's objective was never finite.
    """
    device = ready.device
    content, style = ready.pictures_at(config.quality_size).tensors
    logger.info("plain loop: %d evaluations", config.quality_steps)
    reference = make_reference(make, config, build_network(config, device), content, style)
    began = now(device)
    losses = [loss / SCALE for loss in reference.run(config.quality_steps)]
    seconds = now(device) - began
    # An optimiser without bounds may leave the numbers; what it met before still counts.
    target = min(filter(math.isfinite, losses), default=math.nan)
    if math.isnan(target):
        raise UserError("the plain loop's objective was never finite; try other pictures")
    return PlainRun(reference, losses, seconds, target, best=losses.index(target) + 1)


def run_relay(ready: Job) -> tuple[Tensor, float]:
    """Run what `experiment=relay` does; return the pastiche (1, 3, H, W) and the seconds.

    Raises:
        UserError: the job gave up.
    """
    config = ready.config
    first = prepare(replace(config, features=FeaturesConfig()))
    second = prepare(replace(config, steps=max(1, round(RELAY * config.steps))), like=ready)
    logger.info("the same, begun by the bundled network")
    began = now(ready.device)
    run = Run(first)
    run.complete().finished(JOB)
    run.steer(second)
    result = run.complete().finished(JOB)
    return result.image, now(ready.device) - began


def run_default_job(ready: Job) -> JobRun:
    """Run the default job, keeping pictures of its last scale.

    Raises:
        UserError: the job gave up.
    """
    device = ready.device
    logger.info("default job: %d steps", ready.config.steps)
    pictures: list[tuple[int, float, Tensor]] = []

    def keep(iterate: Iterate) -> None:
        if iterate.scale == iterate.scales and iterate.step % STEPS_BETWEEN_PICTURES == 0:
            pictures.append((iterate.step, now(device) - began, iterate.image.float().clone()))

    began = now(device)
    result = complete_run(ready, [keep]).finished(JOB)
    seconds = now(device) - began
    pictures.append((result.steps, seconds, result.image.to(device)))
    return JobRun(result, seconds, pictures)
