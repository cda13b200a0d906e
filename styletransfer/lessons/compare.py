"""Run one job under every loss mode: `python scripts/compare.py content=A.jpg style=B.jpg`.

The keys are those of `scripts/train.py` that set a pastiche, `rounds=` and `format=`; `loss_mode=`
names the reference. The command prints each mode's time, memory and final loss as ratios to the
reference's, and its gradient error. The run folder receives each pastiche as MODE.png, and
comparison.png, with all of them side by side.
"""

import logging
import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from styletransfer.job import Job
from styletransfer.job.prepare import prepare
from styletransfer.lessons import measure
from styletransfer.lessons.commands.compare import CompareConfig
from styletransfer.losses import LOSS_MODES
from styletransfer.objective import gradient_at
from styletransfer.objective.whole import Objective
from styletransfer.optimize import Outcome
from styletransfer.optimize.run import Run
from styletransfer.pictures import images
from styletransfer.runs.claim import claimed
from styletransfer.runs.watchers import ProgressBar
from styletransfer.system.files import to_json
from styletransfer.system.locks import output_locked

logger = logging.getLogger(__name__)


def compare_modes(config: CompareConfig, folder: Path) -> None:
    """Run one job under every loss mode from the same start (UserError: bad input)."""
    overview = folder / "comparison.png"
    files = [overview, *(folder / f"{name}.png" for name in LOSS_MODES)]
    job = prepare(config, outputs=files)
    height, width = job.scales[-1].size
    if config.output is not None:
        images.check_writable(config.output, (height, width * len(LOSS_MODES)))
    claim = claimed(folder, [path.name for path in files])
    with claim, output_locked(config.output or overview):
        outcomes = paint_each_mode(job, folder)
        pastiches = torch.cat([outcome.picture for outcome in outcomes.values()], dim=3)
        for path in filter(None, (str(overview), config.output)):
            images.write(path, pastiches)
    measures = measured(config, job, outcomes)
    if config.format == "json":
        modes = {
            name: {"picture": str(folder / f"{name}.png"), **measures[name], "losses": one.losses}
            for name, one in outcomes.items()
        }
        told = {"picture": str(overview), "reference": config.loss_mode.name, "modes": modes}
        print(to_json(told))
        return
    print(table(measures))
    print(f"time, memory and final loss are ratios to {config.loss_mode.name}'s")
    print(overview)


def paint_each_mode(job: Job, folder: Path) -> dict[str, Outcome]:
    """Optimise under each loss mode and write its pastiche; return loss mode -> outcome."""
    outcomes: dict[str, Outcome] = {}
    for name in LOSS_MODES:
        logger.info("optimising under %s", name)
        run = Run(replace(job, mode=LOSS_MODES[name]))
        with ProgressBar() as bar:
            for step in run:
                bar(step)
        outcomes[name] = run.result().finished(f"under {name}")
        images.write(folder / f"{name}.png", outcomes[name].picture, job.pictures.alpha)
    return outcomes


def measured(
    config: CompareConfig, job: Job, outcomes: Mapping[str, Outcome]
) -> dict[str, dict[str, float]]:
    """Return for each mode its seconds, gradient error, and ratios to the mode `config.loss_mode`.

    The ratios are those of time, memory and final loss; a ratio to 0 is NaN. Time is the median
    wall time of one evaluation at full size, and memory its peak without the bytes in use before
    it. The gradient error is measured in float64 on the CPU. The picture is the reference mode's
    pastiche.
    """
    reference = config.loss_mode.name
    logger.info("measuring gradients in float64, time and memory")
    image = job.on_device(outcomes[reference].picture)
    # Prepare a new job, because the network's weights in `job` may be rounded to bfloat16; on the
    # CPU, because MPS has no float64.
    exact = prepare(replace(config, precision="float64", device="cpu"))
    errors = gradient_errors(exact, reference, outcomes[reference].image)
    objectives = objectives_of(job)
    work = {mode: partial(gradient_at, objectives[mode], image) for mode in objectives}
    seconds = measure.median_seconds(work, config.rounds, image.device)
    memory = {mode: measure.peak_memory(work[mode], image.device) for mode in work}
    losses = {mode: outcome.losses["total"] for mode, outcome in outcomes.items()}

    def ratio(values: Mapping[str, float], mode: str) -> float:
        return values[mode] / values[reference] if values[reference] else math.nan

    return {
        mode: {
            "time": ratio(seconds, mode),
            "memory": ratio(memory, mode),
            "final loss": ratio(losses, mode),
            "gradient error": errors[mode],
            "seconds": seconds[mode],
        }
        for mode in outcomes
    }


def table(measures: Mapping[str, Mapping[str, float]]) -> str:
    """Return the result of `measured` as a Markdown table."""
    looks = {"time": ".2f", "memory": ".2f", "final loss": ".4f", "gradient error": ".1e"}
    rows = [
        [mode, *(f"{values[name]:{look}}" for name, look in looks.items())]
        for mode, values in measures.items()
    ]
    return measure.table(["mode", *looks], rows)


def objectives_of(job: Job) -> dict[str, Objective]:
    """Return loss mode -> the objective of `job` at its finest scale."""
    pictures = job.full_size()
    return {
        name: Objective(job.extractor, LOSS_MODES[name], job.criterion, pictures)
        for name in LOSS_MODES
    }


def gradient_errors(job: Job, reference: str, image: Tensor) -> dict[str, float]:
    """Return loss mode -> the relative error of its gradient at an image (1, 3, h, w).

    The error is |g - r| / |r| in the Euclidean norm, with g the gradient of the mode and r that of
    the mode `reference`; |g| if r is zero. In float64, rounding causes errors of about 1e-15.
    """
    point = job.on_device(image)
    gradients = {name: gradient_at(each, point).cpu() for name, each in objectives_of(job).items()}
    wanted = gradients[reference]
    norm = wanted.norm().item() or 1.0
    return {name: (each - wanted).norm().item() / norm for name, each in gradients.items()}
