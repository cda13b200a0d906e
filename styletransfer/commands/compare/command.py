"""Run one job under every loss mode: `python scripts/compare.py content=A.jpg style=B.jpg`.

The keys are those of `scripts/train.py`; `rounds=` and `points=` say how much is measured. Without
arguments it takes the bundled pictures. Gradients, calls, time, memory and pictures of each mode
land in the run folder as comparison.json, comparison.md and comparison.png.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from styletransfer.commands.compare import report
from styletransfer.commands.compare.report import Comparison, Findings
from styletransfer.job.job import Job
from styletransfer.job.load import files_read
from styletransfer.job.prepare import prepare
from styletransfer.losses import LOSS_MODES, LossMode
from styletransfer.objective.criterion import Losses, gradient_at
from styletransfer.objective.whole import Objective
from styletransfer.optimize.results import Iterate, Outcome
from styletransfer.optimize.run import complete_run
from styletransfer.pictures import images
from styletransfer.runs.watchers import ProgressBar
from styletransfer.settings import CompareConfig
from styletransfer.system.files import atomic, check_outputs, to_json
from styletransfer.system.measure import counted, describe_machine, median_seconds, peak_memory

logger = logging.getLogger(__name__)


class Descent(NamedTuple):
    """One finished optimisation: the objective at every step, pictures from start to end."""

    outcome: Outcome
    losses: list[float]
    path: list[Tensor]


def main(config: CompareConfig, folder: Path) -> None:
    """Compare the loss modes; print the table and where the files are."""
    comparison = compare(config, folder)
    print(report.modes_table(comparison))
    print(f"time, memory and final loss are ratios to {comparison.reference}'s")
    print(report.sentences(comparison)[-1])
    for name in ("comparison.json", "comparison.md", "comparison.png"):
        print(folder / name)


def compare(config: CompareConfig, folder: Path) -> Comparison:
    """Run one job under every loss mode from the same start (UserError: bad input).

    Each mode's picture, MODE.png, is written once it is done; comparison.png also as `output`.
    """
    job = prepare(config)
    written = [folder / f"comparison.{kind}" for kind in ("json", "md", "png")]
    check_outputs([*written, *(folder / f"{name}.png" for name in LOSS_MODES)], files_read(config))
    descents: dict[str, Descent] = {}
    for name, mode in LOSS_MODES.items():
        logger.info("optimising under %s", name)
        descents[name] = descend(job, mode, config.points)
        images.write(folder / f"{name}.png", descents[name].outcome.picture, job.alpha)
    comparison = measure(config, job, descents)
    pictures = {name: descent.outcome.picture for name, descent in descents.items()}
    overview = report.draw(comparison, pictures)
    for path in (str(folder / "comparison.png"), config.output):
        if path is not None:
            images.write(path, overview)
    json = to_json(asdict(comparison), indent=2) + "\n"
    texts = {"comparison.md": report.markdown(comparison), "comparison.json": json}
    for file, text in texts.items():
        with atomic(folder / file) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return comparison


def descend(job: Job, mode: LossMode, points: int) -> Descent:
    """Stylise under `mode` and keep every loss, and `points` pictures spread over the steps."""
    wanted = {1 + job.config.steps * index // (points - 1) for index in range(points - 1)}
    losses: list[Losses] = []
    path: list[Tensor] = []

    def record(iterate: Iterate) -> None:
        losses.append(iterate.losses)
        if iterate.step in wanted:
            path.append(iterate.image.clone())

    with ProgressBar() as bar:
        run = complete_run(replace(job, mode=mode), [bar, record])
    outcome = run.finished(f"under {mode.name}")
    totals = [terms.as_floats()["total"] for terms in losses]
    return Descent(outcome, totals, [*path, outcome.image])


def measure(config: CompareConfig, job: Job, descents: Mapping[str, Descent]) -> Comparison:
    """Measure evaluations at the reference's pastiche, and gradients along the reference's path."""
    name = config.loss_mode.name
    reference = descents[name]
    picture = reference.outcome.picture
    logger.info("comparing gradients in float64 at %d pictures", len(reference.path))
    # Built anew: the job's own weights may have been rounded to bfloat16.
    errors = gradient_errors(prepare(replace(config, precision="float64")), name, reference.path)
    logger.info("measuring time and memory of an evaluation")
    image = job.on_device(picture)
    objectives = objectives_at(job, config.size)
    work = {mode: partial(gradient_at, objectives[mode], image) for mode in objectives}
    seconds = median_seconds(work, config.rounds, image.device)
    findings = {
        mode: Findings(
            gradient_relative_error=errors[mode],
            backward_calls_per_evaluation=backward_calls(objectives[mode], image),
            seconds_per_evaluation=seconds[mode],
            peak_memory_bytes=peak_memory(work[mode], image.device),
            final_loss=descent.outcome.losses["total"],
            losses=descent.losses,
            image=f"{mode}.png",
        )
        for mode, descent in descents.items()
    }
    return Comparison(
        reference=name,
        modes=findings,
        fake_backward_entries=fake_backward_entries(objectives["fake_backward"], image),
        job={
            "width": picture.shape[3],
            "height": picture.shape[2],
            "features": config.features.name,
            "optimizer": config.optimizer.name,
            "steps": config.steps,
            "scales": len(job.scales),
            "gradient_points": len(reference.path),
            "timing_rounds": config.rounds,
        },
        machine=describe_machine(job.device, job.extractor.dtype),
    )


def objectives_at(job: Job, side: int) -> dict[str, Objective]:
    """Return mode -> what a run minimises under it at the scale whose longer side is `side`."""
    pictures = job.pictures_at(side)
    return {
        name: Objective(job.extractor, mode, job.criterion, pictures)
        for name, mode in LOSS_MODES.items()
    }


def gradient_errors(job: Job, reference: str, points: Sequence[Tensor]) -> dict[str, float]:
    """Return mode -> the largest relative error of its gradient at any of `points`, (1, 3, h, w).

    That is |g - r| / |r| in the Euclidean norm, r being the reference mode's gradient; |g| where r
    is zero; NaN if any gradient is. Each point has the size of one of the job's scales; the job
    should be in float64, where rounding leaves about 1e-15.
    """
    objectives = {side: objectives_at(job, side) for side in {max(x.shape[2:]) for x in points}}
    errors: dict[str, Tensor] = {name: torch.zeros(()) for name in LOSS_MODES}
    for point in map(job.on_device, points):
        at_point = objectives[max(point.shape[2:])]
        gradients = {name: gradient_at(at_point[name], point).cpu() for name in at_point}
        expected = gradients[reference]
        norm = expected.norm().item() or 1.0
        for name, gradient in gradients.items():
            # torch's maximum, unlike Python's, never passes over a NaN.
            errors[name] = torch.maximum(errors[name], (gradient - expected).norm() / norm)
    return {name: error.item() for name, error in errors.items()}


def backward_calls(objective: Objective, image: Tensor) -> int:
    """Return how often one evaluation at `image` calls `backward` on a tensor."""
    # Tensor.backward calls torch.autograd.backward, so both are counted, each once.
    with counted((torch.autograd, "backward")) as calls:
        gradient_at(objective, image)
    return len(calls)


def fake_backward_entries(objective: Objective, image: Tensor) -> dict[str, int]:
    """Return how often autograd, for the sum of losses, and the driver enter fake `backward`s."""
    places = [(kind, "backward") for kind in {type(term.module) for term in objective.terms}]
    leaf = image.detach().clone().requires_grad_()
    with counted(*places) as by_autograd:
        objective.network(leaf)
        losses = [term.module.loss for term in objective.terms]
        torch.stack(losses).sum().backward()  # type: ignore[arg-type, no-untyped-call]
    with counted(*places) as by_driver:
        gradient_at(objective, image)
    return {"by_autograd": len(by_autograd), "by_driver": len(by_driver)}
