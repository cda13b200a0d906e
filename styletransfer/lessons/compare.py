"""Run one job under every loss mode: `python scripts/compare.py content=A.jpg style=B.jpg`.

The run folder receives each pastiche, and comparison.png with all of them.
"""

import logging
import math
import statistics
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

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
# Name of a column in the printed table -> format of its numbers.
LOOKS = {"time": ".2f", "memory": ".2f", "final loss": ".4f", "gradient error": ".1e"}


def compare_modes(config: CompareConfig, folder: Path) -> None:
    """Run one job under every loss mode and print a table; UserError if the input is wrong."""
    overview = folder / "comparison.png"
    files = {name: folder / f"{name}.png" for name in LOSS_MODES}
    job = prepare(config, outputs=[overview, *files.values()])
    height, width = job.scales[-1].size
    if config.output is not None:
        images.check_writable(config.output, (height, width * len(LOSS_MODES)))
    claim = claimed(folder, [overview.name, *(path.name for path in files.values())])
    with claim, output_locked(config.output or overview):
        outcomes = {name: paint(job, name, path) for name, path in files.items()}
        pastiches = torch.cat([outcome.picture for outcome in outcomes.values()], dim=3)
        for path in filter(None, (str(overview), config.output)):
            images.write(path, pastiches)
    measures = measured(config, job, outcomes)
    if config.format == "json":
        modes = {mode: {"picture": str(files[mode]), **x} for mode, x in measures.items()}
        head = {"picture": str(overview), "reference": config.loss_mode.name}
        print(to_json(head | {"modes": modes}))
        return
    print(f"{'mode':<18}", *(f"{name:>14}" for name in LOOKS))
    for mode, x in measures.items():
        print(f"{mode:<18}", *(f"{x[name]:14{look}}" for name, look in LOOKS.items()))
    print(f"time, memory and final loss are ratios to {config.loss_mode.name}'s")
    print(overview)


def paint(job: Job, mode: str, path: Path) -> Outcome:
    """Run a job under a loss mode, and write its pastiche to `path`."""
    logger.info("optimising under %s", mode)
    run = Run(replace(job, mode=LOSS_MODES[mode]))
    with ProgressBar() as bar:
        for step in run:
            bar(step)
    outcome = run.result().finished(f"under {mode}")
    images.write(path, outcome.picture, job.pictures.alpha)
    return outcome


def measured(
    config: CompareConfig, job: Job, outcomes: Mapping[str, Outcome]
) -> dict[str, dict[str, Any]]:
    """Return, for each loss mode, its losses, its seconds, and the columns of the table.

    Time, memory and loss are divided by those of the reference, the loss mode in `config`; the
    ratio to 0 is NaN. The time is the median of several evaluations at the reference's pastiche,
    at full size; the memory is the peak of one. The gradient error is that in float64 on the CPU.
    """
    reference = config.loss_mode.name
    logger.info("measuring gradients in float64, time and memory")
    image = job.on_device(outcomes[reference].picture)
    # Prepare a new job, because the network's weights in `job` may be rounded to bfloat16; on the
    # CPU, because MPS has no float64.
    exact = prepare(replace(config, precision="float64", device="cpu"))
    errors = gradient_errors(exact, reference, outcomes[reference].image)
    work = {mode: partial(gradient_at, each, image) for mode, each in objectives_of(job).items()}
    rounds = measure.seconds_by_round(work, config.rounds, image.device)
    seconds = {mode: statistics.median(times) for mode, times in rounds.items()}
    memory = {mode: measure.peak_memory(each, image.device) for mode, each in work.items()}
    losses = {mode: outcome.losses["total"] for mode, outcome in outcomes.items()}
    ratios: list[Mapping[str, float]] = [seconds, memory, losses]
    found: dict[str, dict[str, Any]] = {}
    for mode, outcome in outcomes.items():
        pairs = [(each[mode], each[reference]) for each in ratios]
        shown = *(x / other if other else math.nan for x, other in pairs), errors[mode]
        found[mode] = dict(zip(LOOKS, shown, strict=True))
        found[mode] |= {"seconds": seconds[mode], "losses": outcome.losses}
    return found


def objectives_of(job: Job) -> dict[str, Objective]:
    """Return loss mode -> the objective of `job` at its finest scale."""
    parts = job.criterion, job.full_size()
    return {name: Objective(job.extractor, mode, *parts) for name, mode in LOSS_MODES.items()}


def gradient_errors(job: Job, reference: str, image: Tensor) -> dict[str, float]:
    """Return loss mode -> the relative error of its gradient at an image (1, 3, h, w).

    It is |g - r| / |r| in the Euclidean norm; g is the mode's gradient, r that of the mode
    `reference`. If r is zero, it is |g|.
    """
    point = job.on_device(image)
    gradients = {name: gradient_at(each, point).cpu() for name, each in objectives_of(job).items()}
    wanted = gradients[reference]
    norm = wanted.norm().item() or 1.0
    return {name: (each - wanted).norm().item() / norm for name, each in gradients.items()}
