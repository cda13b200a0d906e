"""How soon the default job is as good as the plain loop, which judges both."""

import logging
import math
import time
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from styletransfer.commands.benchmark.reference import SCALE, MakeReference, make_reference
from styletransfer.commands.benchmark.report import Quality
from styletransfer.commands.benchmark.rows import build_network, job
from styletransfer.config import BenchmarkConfig
from styletransfer.errors import UserError
from styletransfer.optimize.job import Job, prepare
from styletransfer.optimize.run import Callback, Iterate, Result, stylize
from styletransfer.pictures.images import resize, scaled_size

logger = logging.getLogger(__name__)

# The job's pictures at full size are judged this many steps apart.
STEPS_BETWEEN_PICTURES = 5


def measure_quality(config: BenchmarkConfig, make: MakeReference) -> Quality:
    """Run the plain loop, then the default job, and find when the job was as good.

    The target is the lowest objective that the plain loop met, and its time the time until then:
    without a line search its last evaluation need not be its best. Loading the network and the
    pictures is counted for neither; making the targets is counted for the job alone. The job's
    pictures are kept while it runs and judged afterwards, so that judging costs it no time. Where
    precision=auto is not float32, the job is run in float32 as well.

    Args:
        config: `quality_size`, `quality_steps` and `steps`.
        make: the plain loop.

    Raises:
        UserError: bad input, a job that gave up, or a plain loop that was never finite.
    """
    ready = prepare(replace(job(config, config.quality_size), precision="auto"))
    device = next(ready.extractor.parameters()).device
    network = build_network(config, device)
    content, style = (  # as stylize has them at its last scale
        resize(image.to(device), scaled_size((image.shape[2], image.shape[3]), config.quality_size))
        for image in (ready.content, ready.style)
    )

    logger.info("plain loop: %d evaluations", config.quality_steps)
    reference = make_reference(make, config, network, content, style)
    began = _now(device)
    losses = [loss / SCALE for loss in reference.run(config.quality_steps)]
    plain_seconds = _now(device) - began
    # An optimiser without bounds may leave the numbers; what it met before still counts.
    target = min(filter(math.isfinite, losses), default=math.nan)
    if math.isnan(target):
        raise UserError("the plain loop's objective was never finite; try other pictures")
    best = losses.index(target) + 1

    logger.info("default job: %d steps", config.steps)
    pictures: list[tuple[int, float, Tensor]] = []

    def keep(iterate: Iterate) -> None:
        if iterate.scale == iterate.scales and iterate.step % STEPS_BETWEEN_PICTURES == 0:
            pictures.append((iterate.step, _now(device) - began, iterate.image.float().clone()))

    began = _now(device)
    result = _run(ready, [keep])
    seconds = _now(device) - began

    twin: Result | None = None
    if ready.extractor.dtype != torch.float32:
        logger.info("default job in float32")
        twin = _run(prepare(replace(ready.config, precision="float32")))

    pictures.append((result.steps, seconds, result.image.to(device)))
    reached: tuple[int, float] | None = None
    with torch.no_grad():
        for step, elapsed, picture in pictures:
            if reference.objective(picture).item() / SCALE <= target:
                reached = step, elapsed
                break
        job_final = reference.objective(pictures[-1][2]).item() / SCALE
        plain_final = reference.objective(reference.picture).item() / SCALE
        float32_final = None
        if twin is not None:
            float32_final = reference.objective(twin.image.to(device)).item() / SCALE
    until_best = plain_seconds * best / len(losses)
    return Quality(
        width=content.shape[3],
        height=content.shape[2],
        ratio=None if reached is None else reached[1] / until_best,
        seconds=None if reached is None else reached[1],
        plain_seconds=until_best,
        target=target,
        plain_evaluations=len(losses),
        plain_best_evaluation=best,
        plain_final=plain_final if math.isfinite(plain_final) else None,
        job_evaluations=result.steps if reached is None else reached[0],
        job_steps=config.steps,
        job_total_seconds=seconds,
        job_final=job_final,
        float32_final=float32_final,
        job_precision=str(ready.extractor.dtype).removeprefix("torch."),
    )


def _run(ready: Job, callbacks: Sequence[Callback] = ()) -> Result:
    """Stylise, with every way to end early as an exception."""
    result = stylize(ready, callbacks)
    if result.interrupted:
        raise KeyboardInterrupt
    if result.problem is not None:
        raise UserError(f"the default job gave up: {result.problem}")
    return result


def _now(device: torch.device) -> float:
    """Return seconds on a clock that runs evenly, once the device has done what it was asked."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()
