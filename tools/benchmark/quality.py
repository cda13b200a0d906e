"""How soon the default job is as good as the plain loop, which judges both."""

import logging
import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from benchmarks.plain import PlainLoop
from styletransfer.errors import UserError
from styletransfer.job.job import Job
from styletransfer.job.prepare import prepare
from styletransfer.optimize.results import Iterate
from styletransfer.optimize.run import Run, complete_run
from styletransfer.settings import FeaturesConfig
from styletransfer.system.measure import now
from tools.benchmark.config import BenchmarkConfig, default_config
from tools.benchmark.reference import SCALE, plain_loop
from tools.benchmark.results import Quality
from tools.benchmark.rows import build_network

logger = logging.getLogger(__name__)

# The job's pictures at full size are judged this many steps apart.
STEPS_BETWEEN_PICTURES = 5
JOB = "the default job"
# Steps of the second half of a relay (see `_run_relay`) over those of its first.
RELAY = 0.84


@dataclass(frozen=True)
class PlainRun:
    """The plain loop, run to its end: its objective at each evaluation, in the package's units."""

    loop: PlainLoop
    losses: list[float]
    seconds: float

    @property
    def target(self) -> float:
        """The lowest of the losses. What an optimiser met before it left the numbers counts."""
        return min(filter(math.isfinite, self.losses), default=math.nan)

    @property
    def best(self) -> int:
        """The number, from 1, of the evaluation that met the target."""
        return self.losses.index(self.target) + 1

    @property
    def seconds_until_best(self) -> float:
        """Seconds until the target was met: all evaluations cost the same."""
        return self.seconds * self.best / len(self.losses)

    @torch.no_grad()
    def judge(self, picture: Tensor) -> float:
        """Return the plain loop's objective at a picture (1, 3, H, W) of its size."""
        return self.loop.objective(picture.to(self.loop.picture)).item() / SCALE


def measure_quality(config: BenchmarkConfig) -> Quality:
    """Run the plain loop, then the default job, and find when the job was as good.

    The target is the lowest objective of the plain loop, and the plain loop's time ends at that
    evaluation: without a line search the last one need not be the best. No time includes loading
    the network and the pictures; the job's time includes making the targets. The job's pictures are
    kept while it runs and judged afterwards. Where precision=auto is not float32, the job is run in
    float32 as well. Last the job is run with the bundled network for its first part. (UserError:
    bad input, a job that gave up, or a plain loop that was never finite.)
    """
    job = prepare(replace(default_config(config, config.quality_size), precision="auto"))
    plain = _run_plain(config, job)
    pictures = _run_default_job(job)
    steps, job_seconds, picture = pictures[-1]
    float32 = relay = None
    if job.extractor.dtype != torch.float32:
        logger.info("default job in float32")
        twin = prepare(replace(job.config, precision="float32"))
        float32 = complete_run(twin).finished(JOB).image
    if job.config.features.name != "bundled":
        relay = _run_relay(job)
    good = (made for made in pictures if plain.judge(made[2]) <= plain.target)
    steps, seconds, _ = next(good, (steps, None, None))
    plain_final = plain.judge(plain.loop.picture)
    return Quality(
        width=picture.shape[3],
        height=picture.shape[2],
        ratio=None if seconds is None else seconds / plain.seconds_until_best,
        seconds=seconds,
        plain_seconds=plain.seconds_until_best,
        target=plain.target,
        plain_evaluations=len(plain.losses),
        plain_best_evaluation=plain.best,
        plain_final=plain_final if math.isfinite(plain_final) else None,
        job_evaluations=steps,
        job_steps=config.steps,
        job_total_seconds=job_seconds,
        job_final=plain.judge(picture),
        float32_final=None if float32 is None else plain.judge(float32),
        job_precision=job.precision,
        relay_seconds=None if relay is None else relay[1],
        relay_final=None if relay is None else plain.judge(relay[0]),
    )


def _run_plain(config: BenchmarkConfig, job: Job) -> PlainRun:
    """Run the plain loop on the pictures as the job has them at its last scale."""
    content, style = job.pictures_at(config.quality_size).tensors
    logger.info("plain loop: %d evaluations", config.quality_steps)
    loop = plain_loop(config, build_network(config, job.device), content, style)
    began = now(job.device)
    losses = [loss / SCALE for loss in loop.run(config.quality_steps)]
    plain = PlainRun(loop, losses, now(job.device) - began)
    if math.isnan(plain.target):
        raise UserError("the plain loop's objective was never finite; try other pictures")
    return plain


def _run_default_job(job: Job) -> list[tuple[int, float, Tensor]]:
    """Run the default job; return (step, seconds until then, picture) of its last scale.

    The last of them is the result.
    """
    logger.info("default job: %d steps", job.config.steps)
    pictures: list[tuple[int, float, Tensor]] = []

    def keep(iterate: Iterate) -> None:
        if iterate.scale == iterate.scales and iterate.step % STEPS_BETWEEN_PICTURES == 0:
            seconds = now(job.device) - began
            pictures.append((iterate.step, seconds, iterate.image.float().clone()))

    began = now(job.device)
    outcome = complete_run(job, [keep]).finished(JOB)
    return [*pictures, (outcome.steps, now(job.device) - began, outcome.image)]


def _run_relay(job: Job) -> tuple[Tensor, float]:
    """Run the bundled network, then the job's own; return the pastiche (1, 3, H, W) and seconds."""
    config = job.config
    first = prepare(replace(config, features=FeaturesConfig()))
    second = prepare(replace(config, steps=max(1, round(RELAY * config.steps))), like=job)
    logger.info("the same, with the bundled network for the first part")
    began = now(job.device)
    run = Run(first)
    run.complete().finished(JOB)
    run.steer(second)
    pastiche = run.complete().finished(JOB).image
    return pastiche, now(job.device) - began
