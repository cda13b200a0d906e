"""Run one job under every loss mode: `python scripts/compare.py content=A.jpg style=B.jpg`.

The keys are those of `scripts/train.py` that set a pastiche, and `rounds=`. Without arguments the
bundled pictures are used. The run folder receives comparison.json, with gradient error, time and
memory of each mode, and comparison.png, with the pastiches side by side.
"""

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from styletransfer.job import Job
from styletransfer.job.load import files_read
from styletransfer.job.prepare import prepare
from styletransfer.losses import LOSS_MODES, get_loss_mode
from styletransfer.objective import gradient_at
from styletransfer.objective.whole import Objective
from styletransfer.optimize import Iterate, Outcome
from styletransfer.optimize.run import Run
from styletransfer.pictures import images
from styletransfer.runs.watchers import ProgressBar
from styletransfer.settings.pictures import CompareConfig
from styletransfer.system import measure
from styletransfer.system.files import atomic, check_outputs, to_json

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Findings:
    """Findings holds the measurements of one loss mode."""

    gradient_relative_error: float  # in float64; the larger one of content image and pastiche
    seconds_per_evaluation: float  # median wall time of one forward and backward at full size
    peak_memory_bytes: int  # peak of one evaluation, minus the bytes in use before it
    final_loss: float  # total loss of the pastiche
    losses: list[float]  # total loss at every step; each image size has its own objective


@dataclass(frozen=True)
class Comparison:
    """A Comparison is the contents of comparison.json."""

    reference: str  # name of the loss mode with which all modes are compared
    modes: dict[str, Findings]  # name of a loss mode -> its measurements
    machine: dict[str, str | int]  # name, such as "processor" or "torch" -> its value

    def table(self) -> str:
        """Return a Markdown table of ratios to `reference`; a ratio to 0 is NaN."""

        def ratio(mode: Findings, value: str) -> float:
            base = getattr(self.modes[self.reference], value)
            return getattr(mode, value) / base if base else math.nan

        rows = [
            [
                name,
                f"{ratio(mode, 'seconds_per_evaluation'):.2f}",
                f"{ratio(mode, 'peak_memory_bytes'):.2f}",
                f"{ratio(mode, 'final_loss'):.4f}",
                f"{mode.gradient_relative_error:.1e}",
            ]
            for name, mode in self.modes.items()
        ]
        return measure.table(["mode", "time", "memory", "final loss", "gradient error"], rows)


def main(config: CompareConfig, folder: Path) -> None:
    """Compare the loss modes; print the table and the paths of the files."""
    comparison = compare(config, folder)
    print(comparison.table())
    print(f"time, memory and final loss are ratios to {comparison.reference}'s")
    print(folder / "comparison.json", folder / "comparison.png", sep="\n")


def compare(config: CompareConfig, folder: Path) -> Comparison:
    """Run one job under every loss mode from the same start (UserError: bad input).

    Each mode's pastiche is written to `folder` as MODE.png when it is finished. At the end all of
    them are written side by side as comparison.png, and to `config.output` if it is set.
    """
    job = prepare(config)
    written = [folder / f"comparison.{kind}" for kind in ("json", "png")]
    check_outputs([*written, *(folder / f"{name}.png" for name in LOSS_MODES)], files_read(config))
    outcomes: dict[str, Outcome] = {}
    losses: dict[str, list[float]] = {name: [] for name in LOSS_MODES}
    for name in LOSS_MODES:
        logger.info("optimising under %s", name)
        outcomes[name] = descend(job, name, losses[name])
        images.write(folder / f"{name}.png", outcomes[name].picture, job.pictures.alpha)
    comparison = find(config, job, outcomes, losses)
    overview = torch.cat([outcome.picture for outcome in outcomes.values()], dim=3)
    for path in filter(None, (str(folder / "comparison.png"), config.output)):
        images.write(path, overview)
    with atomic(folder / "comparison.json") as temporary:
        temporary.write_text(to_json(asdict(comparison), indent=2) + "\n", encoding="utf-8")
    return comparison


def descend(job: Job, mode: str, losses: list[float]) -> Outcome:
    """Run the optimisation of `job` under a loss mode; append the loss of every step to losses."""

    def record(iterate: Iterate) -> None:
        losses.append(iterate.losses.as_floats()["total"])

    with ProgressBar() as bar:
        run = Run(replace(job, mode=get_loss_mode(mode))).complete([bar, record])
    return run.finished(f"under {mode}")


def find(
    config: CompareConfig,
    job: Job,
    outcomes: Mapping[str, Outcome],
    losses: Mapping[str, list[float]],
) -> Comparison:
    """Measure all modes at the reference mode's pastiche, gradients at the content image too."""
    name = config.loss_mode.name
    logger.info("measuring gradients in float64, time and memory")
    image = job.on_device(outcomes[name].picture)
    # Prepare a new job: the network's weights in `job` may be rounded to bfloat16.
    exact = prepare(replace(config, precision="float64"))
    points = [exact.pictures_at(config.size).content, outcomes[name].image]
    errors = gradient_errors(exact, name, points)
    objectives = objectives_at(job, config.size)
    work = {mode: partial(gradient_at, objectives[mode], image) for mode in objectives}
    seconds = measure.median_seconds(work, config.rounds, image.device)
    findings = {
        mode: Findings(
            gradient_relative_error=errors[mode],
            seconds_per_evaluation=seconds[mode],
            peak_memory_bytes=measure.peak_memory(work[mode], image.device),
            final_loss=outcome.losses["total"],
            losses=losses[mode],
        )
        for mode, outcome in outcomes.items()
    }
    return Comparison(name, findings, measure.describe_machine(job.device, job.extractor.dtype))


def objectives_at(job: Job, side: int) -> dict[str, Objective]:
    """Return loss mode -> the objective of `job` for images with the longer side `side` pixels."""
    pictures = job.pictures_at(side)
    return {
        name: Objective(job.extractor, get_loss_mode(name), job.criterion, pictures)
        for name in LOSS_MODES
    }


def gradient_errors(job: Job, reference: str, points: Sequence[Tensor]) -> dict[str, float]:
    """Return loss mode -> the largest relative error of its gradient at any of `points`.

    The error is |g - r| / |r| in the Euclidean norm, with g the gradient of the mode and r that of
    the mode `reference`; |g| if r is zero; NaN if any gradient is NaN. Each point is an image
    (1, 3, h, w) of one of the job's sizes. In float64, rounding causes errors of about 1e-15.
    """
    errors: dict[str, Tensor] = {name: torch.zeros(()) for name in LOSS_MODES}
    for point in map(job.on_device, points):
        objectives = objectives_at(job, max(point.shape[2:]))
        gradients = {name: gradient_at(objectives[name], point).cpu() for name in objectives}
        norm = gradients[reference].norm().item() or 1.0
        for name, gradient in gradients.items():
            # torch.maximum, unlike Python's max, always keeps a NaN.
            error = (gradient - gradients[reference]).norm() / norm
            errors[name] = torch.maximum(errors[name], error)
    return {name: error.item() for name, error in errors.items()}
