"""The training loop for any network, with its progress bar, metrics and checkpoints."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import ChainedScheduler, CosineAnnealingLR, LinearLR, LRScheduler
from tqdm.auto import tqdm

from styletransfer.system.checkpoint import Checkpoint
from styletransfer.system.files import keep_lines, to_json
from styletransfer.system.signals import Stopped

METRICS_EVERY = 10  # steps between two lines of losses in the metrics file
WARMUP_STEPS = 50  # largest number of steps in which the learning rate rises at the start


class Training(Protocol):
    """A training that can make steps; `step` is the number of steps made so far."""

    step: int

    def advance(self) -> dict[str, Tensor]:
        """Make one step and return its losses (detached, 0-d) by name."""


@dataclass(frozen=True)
class Course:
    """The length of a training, and the functions that it calls between its steps."""

    steps: int  # total number of steps
    headline: str  # name of the loss that the progress bar shows
    look_every: int  # steps between two calls of `look`
    # Evaluates the network, for example by a preview; returns values for the metrics file.
    look: Callable[[], dict[str, Any]]
    save: Callable[[], None]  # writes the network and the checkpoint


def complete(
    run: Training,
    course: Course,
    checkpoint: Checkpoint,
    file: Path,
    asked: Callable[[], Stopped | None],
) -> None:
    """Make the remaining steps until a signal comes, then save the network and the checkpoint.

    `file` receives the metrics: a JSON line for every tenth step and for each look. `asked` returns
    the signal, if any. Lines of steps that are made again are dropped.
    """
    if file.exists():
        # Losses are written after their step, but a look is written before the next step. The look
        # at the current step is therefore made again, and its old line is dropped.
        begun, name = run.step, course.headline
        keep_lines(
            file, lambda line: line["step"] < begun or (line["step"] == begun and name in line)
        )
    look: dict[str, Any] = {"unit": "step", "dynamic_ncols": True, "disable": not sys.stderr}
    bar = tqdm(total=course.steps, initial=run.step, **look)
    with file.open("a", encoding="utf-8") as metrics, bar:
        while run.step < course.steps and asked() is None:
            if checkpoint.is_due():
                course.save()
            if run.step % course.look_every == 0:
                _note(metrics, {"step": run.step, **course.look()})
            losses = run.advance()
            if run.step % METRICS_EVERY == 0:
                values = {name: value.item() for name, value in losses.items()}
                _note(metrics, {"step": run.step, **values})
                bar.set_postfix_str(f"{course.headline} {values[course.headline]:.4f}")
            bar.update(1)
        if run.step == course.steps:
            _note(metrics, {"step": run.step, **course.look()})
    course.save()


def generator_at(seed: int, step: int) -> torch.Generator:
    """Return the CPU generator for all random numbers of one step; `step` is above -10^9."""
    return torch.Generator().manual_seed(((seed + 1) * 10**9 + step) % 2**64)


def schedule(optimizer: Optimizer, steps: int) -> LRScheduler:
    """Return the learning rate's schedule: a short linear rise times half a cosine to zero."""
    warmup = min(WARMUP_STEPS, steps // 10)
    rise = LinearLR(optimizer, start_factor=1 / (warmup + 1), total_iters=warmup)
    return ChainedScheduler([rise, CosineAnnealingLR(optimizer, T_max=steps)])


def _note(metrics: Any, values: dict[str, Any]) -> None:
    metrics.write(to_json(values) + "\n")
    metrics.flush()
