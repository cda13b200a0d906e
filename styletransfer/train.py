"""Paint one picture in the style of another: `scripts/train.py content=A.jpg style=B.jpg`.

This file tells the whole story of a run. `paint` does the following, and each line names where:

1. The settings are `configs/train.yaml` and the command line, as a `TrainConfig` (settings/).
2. `prepare` reads the pictures and builds the network and the loss mode (job/, features/, losses/).
3. For each scale of the picture, `Run` makes an `Objective`: the network with the loss modules of
   the mode in it (objective/whole.py), and an optimiser that moves the picture
   (optimize/descent.py).
4. At each step the optimiser calls `Objective.evaluate`, which runs the network forward, lets the
   loss mode run it backward, and returns the losses with the gradient in `image.grad`.
5. `RecordedRun` writes metrics and checkpoints after a step, and the pastiche at the end (runs/).

`dry_run=true` prints what would be done, with estimated memory and time, and writes nothing.
`resume=FOLDER` goes on where the run in that folder was stopped.
"""

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from hydra.core.hydra_config import HydraConfig

from styletransfer.errors import UserError
from styletransfer.job.job import Job
from styletransfer.job.load import files_read
from styletransfer.job.prepare import prepare
from styletransfer.optimize.results import Outcome
from styletransfer.runs.changes import in_turn
from styletransfer.runs.folder import CHECKPOINT, CONTENT, PASTICHE, RECORD
from styletransfer.runs.recipe import finished_picture, own_settings
from styletransfer.runs.recorded_run import Guide, RecordedRun
from styletransfer.settings import TrainConfig
from styletransfer.system.files import check_outputs, locked, remove_stale
from styletransfer.system.signals import Stopped, signals_held, stop_on_signals


@dataclass(frozen=True)
class FinishedRun:
    """The file that a run has written, its losses and steps, and how the run ended."""

    picture: Path  # the file that holds the pastiche
    outcome: Outcome
    seconds: float  # wall time of the optimisation, without that before a checkpoint
    device: str
    precision: str
    problem: str | None = None  # why it gave up, or why the picture is elsewhere, in one line
    stopped: Stopped | None = None  # the signal that has come meanwhile


def main(config: TrainConfig, folder: Path) -> None:
    """Run one style transfer, or go on with one, and print where the picture is."""
    if config.resume not in (None, "auto"):
        folder = Path(config.resume)
        config = own_settings(config, folder, _typed_keys())
    if config.dry_run:
        _print_plans(config)
        return
    if picture := finished_picture(config, folder):
        print(f"already finished\n{picture}")
        return
    run = paint(config, folder)
    _print_outcome(run, folder)
    if run.problem is not None:
        raise UserError(run.problem)
    if run.stopped is not None:
        sys.exit(run.stopped.status)


def paint(config: TrainConfig, folder: Path, guide: Guide | None = None) -> FinishedRun:
    """Stylise one picture and write it, with `metrics.jsonl` and snapshots, into `folder`.

    The pastiche goes to `config.output` if that is set, and to `folder/pastiche.png`, beside the
    content at its size, which `mix` reads. A run that ends early leaves the best picture so far
    there, and a checkpoint; with `resume=auto` it goes on from the checkpoint in `folder` if there
    is one. `guide` may observe and steer the run.

    Raises:
        UserError: bad input, before anything is written, or the picture can be written nowhere.
        Stopped: a signal came before there was a picture.
    """
    with stop_on_signals() as stop:
        picture = Path(config.output) if config.output else folder / PASTICHE
        job = _checked(config, folder, picture)
        folder.mkdir(parents=True, exist_ok=True)
        # Held from here: the first optimiser makes torch import libraries that abort the process if
        # a signal's exception crosses them.
        with signals_held(), locked(folder):
            remove_stale(folder)
            start = time.perf_counter()
            with RecordedRun(config, job, folder, picture, guide) as record:
                record.begin()
                outcome = record.run.complete(record.callbacks)
                while record.goes_on(outcome):
                    outcome = record.run.complete(record.callbacks)
            seconds, stopped = time.perf_counter() - start, stop.asked
    return FinishedRun(
        record.written,
        outcome,
        seconds,
        str(job.device),
        job.precision,
        outcome.problem or record.problem,
        stopped,
    )


def _checked(config: TrainConfig, folder: Path, picture: Path) -> Job:
    """Return the job of a run after checking its settings, its changes and all paths."""
    later = in_turn(config, config.changes)
    job = prepare(config)
    for changed in later:
        prepare(changed, like=job)
    kept = [folder / name for name in (PASTICHE, CONTENT, RECORD)]
    if os.path.realpath(picture) == os.path.realpath(folder / PASTICHE):
        kept.remove(folder / PASTICHE)
    read = [file for settings in (config, *later) for file in files_read(settings)]
    check_outputs([picture, *kept], read)
    return job


def _print_plans(config: TrainConfig) -> None:
    """Print what a run would do, and after each of its changes (UserError: bad input)."""
    from styletransfer.runs.plan import plan

    later = in_turn(config, config.changes)
    first = prepare(config, enlarge=False)
    jobs = [first, *(prepare(changed, enlarge=False, like=first) for changed in later)]
    steps = [0, *(change.after for change in config.changes)]
    for index, (after, job) in enumerate(zip(steps, jobs, strict=True)):
        if after in steps[index + 1 :]:  # another change comes before a step is made
            continue
        if after:
            print(f"after {after} steps, the scales of these that are left:")
        print(plan(job))


def _print_outcome(run: FinishedRun, folder: Path) -> None:
    outcome = run.outcome
    if outcome.losses:
        print("  ".join(f"{name} {value:.4g}" for name, value in outcome.losses.items()))
    how = "done in" if outcome.is_whole else "stopped early after"
    print(f"{how} {run.seconds:.1f} s, {outcome.steps} steps, {run.device}, {run.precision}")
    if (folder / CHECKPOINT).exists():
        print(f"go on with resume={folder}")
    print(run.picture)


def _typed_keys() -> list[str]:
    """Return the keys of the command line, groups included; none outside of Hydra."""
    if not HydraConfig.initialized():
        return []
    overrides = HydraConfig.get().overrides.task
    return [override.lstrip("+~").partition("=")[0].partition("@")[0] for override in overrides]
