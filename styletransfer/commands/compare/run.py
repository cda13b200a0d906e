"""The same job under every loss mode, side by side: gradients, cost and pictures."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from torch import Tensor

from styletransfer.commands.compare.chart import draw
from styletransfer.commands.compare.evaluations import (
    backward_calls,
    fake_backward_entries,
    gradient_errors,
    objective_at,
)
from styletransfer.commands.compare.report import Comparison, Entries, Findings, as_json, markdown
from styletransfer.config import CompareConfig
from styletransfer.errors import UserError
from styletransfer.job.job import Job
from styletransfer.job.prepare import prepare
from styletransfer.modes import LOSS_MODES, LossMode
from styletransfer.objective.terms import Losses, gradient_at
from styletransfer.optimize.results import Iterate
from styletransfer.optimize.run import complete_run
from styletransfer.pictures import images
from styletransfer.runs.watchers import ProgressBar
from styletransfer.system.files import atomic, check_folder
from styletransfer.system.measure import describe_machine, median_seconds, peak_memory

logger = logging.getLogger(__name__)

# Each is a picture that is kept, and three gradients in float64.
MOST_POINTS = 1000


@dataclass(frozen=True)
class Optimization:
    """One finished optimisation.

    Attributes:
        picture: the pastiche (1, 3, H, W), float32, on the CPU.
        final_loss: the objective at that picture.
        losses: the objective at every step; each scale has an objective of its own.
        points: pictures along the path, each (1, 3, h, w), the start and the pastiche included.
        scales: levels of the pyramid.
    """

    picture: Tensor
    final_loss: float
    losses: list[float]
    points: list[Tensor]
    scales: int


def compare(config: CompareConfig, folder: Path) -> Comparison:
    """Run one job under every loss mode from the same start, and write what it shows to `folder`.

    Each mode's picture is written as MODE.png once it is done; comparison.json, comparison.md and
    comparison.png follow at the end. `config.output`, if set, receives that last picture too.

    Raises:
        UserError: bad input, or a loss that stays not finite.
        KeyboardInterrupt: Ctrl-C. Files that are in the folder by then are complete.
    """
    if config.rounds < 1:
        raise UserError(f"rounds={config.rounds} must be 1 or more")
    if not 2 <= config.points <= MOST_POINTS:
        raise UserError(
            f"points={config.points} must be 2 (the start and the end) to {MOST_POINTS}"
        )
    job = prepare(config)
    check_folder(folder / "comparison.json")

    runs: dict[str, Optimization] = {}
    for name, mode in LOSS_MODES.items():
        logger.info("optimising under %s", name)
        runs[name] = optimize(job, mode, config.points)
        images.write(folder / f"{name}.png", runs[name].picture, job.alpha)
    comparison = described(config, job, runs)
    overview = draw(comparison, {name: each.picture for name, each in runs.items()})
    for path in (str(folder / "comparison.png"), config.output):
        if path is not None:
            images.write(path, overview)
    texts = {"comparison.md": markdown(comparison), "comparison.json": as_json(comparison)}
    for file, text in texts.items():
        with atomic(folder / file) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return comparison


def optimize(job: Job, mode: LossMode, points: int) -> Optimization:
    """Stylise under `mode` and keep every loss, and `points` pictures spread over the steps.

    Raises:
        UserError: the loss was not finite time and again.
        KeyboardInterrupt: Ctrl-C.
    """
    steps = job.config.steps
    wanted = {1 + steps * index // (points - 1) for index in range(points - 1)}
    losses: list[Losses] = []
    path: list[Tensor] = []
    scales = 1

    def record(iterate: Iterate) -> None:
        nonlocal scales
        scales = iterate.scales
        losses.append(iterate.losses)
        if iterate.step in wanted:
            path.append(iterate.image.clone())

    with ProgressBar() as bar:
        result = complete_run(replace(job, mode=mode), [bar, record]).finished(f"under {mode.name}")
    return Optimization(
        picture=result.picture,
        final_loss=result.losses["total"],
        losses=[each.as_floats()["total"] for each in losses],
        points=[*path, result.image],
        scales=scales,
    )


def described(config: CompareConfig, job: Job, runs: Mapping[str, Optimization]) -> Comparison:
    """Return the measured runs with what they depend on."""
    modes, entries = measure(config, job, runs)
    reference = runs[config.loss_mode.name]
    return Comparison(
        reference=config.loss_mode.name,
        modes=modes,
        fake_backward_entries=entries,
        job={
            "width": reference.picture.shape[3],
            "height": reference.picture.shape[2],
            "features": config.features.name,
            "optimizer": config.optimizer.name,
            "steps": config.steps,
            "scales": reference.scales,
            "gradient_points": len(reference.points),
            "timing_rounds": config.rounds,
        },
        machine=describe_machine(job.device, job.extractor.dtype),
    )


def measure(
    config: CompareConfig, job: Job, runs: Mapping[str, Optimization]
) -> tuple[dict[str, Findings], Entries]:
    """Measure evaluations at the reference's pastiche, and gradients along the reference's path."""
    reference = runs[config.loss_mode.name]
    logger.info("comparing gradients in float64 at %d pictures", len(reference.points))
    # Built anew: the job's own weights may have been rounded to bfloat16.
    exact = prepare(replace(config, precision="float64"))
    errors = gradient_errors(exact, config.loss_mode.name, reference.points)
    logger.info("measuring time and memory of an evaluation")
    image = job.on_device(reference.picture)
    objectives = {name: objective_at(job, mode, config.size) for name, mode in LOSS_MODES.items()}
    work = {name: partial(gradient_at, each, image) for name, each in objectives.items()}
    seconds = median_seconds(work, config.rounds, image.device)
    findings = {
        name: Findings(
            gradient_relative_error=errors[name],
            backward_calls_per_evaluation=backward_calls(objectives[name], image),
            seconds_per_evaluation=seconds[name],
            peak_memory_bytes=peak_memory(work[name], image.device),
            final_loss=done.final_loss,
            losses=done.losses,
            image=f"{name}.png",
        )
        for name, done in runs.items()
    }
    by_autograd, by_driver = fake_backward_entries(objectives["fake_backward"], image)
    return findings, Entries(by_autograd, by_driver)
