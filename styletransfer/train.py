"""Paint one picture in the style of another: `scripts/train.py content=A.jpg style=B.jpg`.

This file shows a run from start to end. `paint` does the following, in the files named here:

1. The settings are `configs/train.yaml` and the command line, as a `TrainConfig` (settings/).
2. `prepare` reads the pictures and builds the network and the loss mode (job/, features/, losses/).
3. For each scale of the picture, `Run` makes an `Objective`, the network with the loss modules of
   the mode in it (objective/whole.py), and a `Descent`, the steps at this size
   (optimize/descent.py).
4. Each step begins with `Objective.evaluate`, which runs the network forward, lets the loss mode
   run it backward, and returns the losses with the gradient in `image.grad`. Then the optimiser
   moves the picture (optimize/optimizers.py).
5. `RecordedRun` makes the run, and writes metrics and checkpoints after a step, and the pastiche at
   the end (runs/).

`dry_run=true` prints what would be done, with estimated memory, and writes nothing.
`resume=FOLDER` continues the stopped run in that folder.
"""

import os
import sys
from pathlib import Path

from styletransfer.errors import UserError
from styletransfer.job import Job
from styletransfer.job.prepare import prepare
from styletransfer.job.sources import files_read
from styletransfer.runs import CHECKPOINT, CONTENT, PASTICHE, RECORD
from styletransfer.runs.recorded_run import RecordedRun, StepCallback
from styletransfer.settings import TrainConfig
from styletransfer.system import signals_held, stop_on_signals
from styletransfer.system.files import check_outputs, locked, remove_stale


def main(config: TrainConfig, folder: Path) -> None:
    """Run or continue one style transfer, and print the path of the picture."""
    picture = None  # or the file of a run that is already finished
    if config.resume is not None:
        from styletransfer.runs.resume import finished_picture, own_settings, typed_keys

        if config.resume != "auto":
            folder = Path(config.resume)
            config = own_settings(config, folder, typed_keys())
        picture = finished_picture(config, folder)
    if config.dry_run:
        from styletransfer.runs.plan import plan

        print(plan(prepare(config, enlarge=False)))
        return
    if picture is not None:
        print(f"already finished\n{picture}")
        return
    with stop_on_signals() as stop:
        run = paint(config, folder)
        _print_outcome(run)
        if run.problem is not None:
            raise UserError(run.problem)
        if stop.asked is not None:
            sys.exit(stop.asked.status)


def paint(config: TrainConfig, folder: Path, guide: StepCallback | None = None) -> RecordedRun:
    """Stylise one picture and write it, with `metrics.jsonl`, into `folder`.

    The pastiche goes to `config.output` if that is set, and to `folder/pastiche.png`. `folder` also
    gets the content image at the pastiche's size, for `mix`. A run that is interrupted writes the
    best picture so far and a checkpoint. With `resume=auto`, a run continues from a checkpoint in
    `folder`. `guide` may observe and steer the run, which is returned.

    Raises:
        UserError: bad input, before anything is written, or the picture cannot be written.
        Stopped: a signal came before there was a picture.
    """
    picture = Path(config.output) if config.output else folder / PASTICHE
    job = _checked(config, folder, picture)
    folder.mkdir(parents=True, exist_ok=True)
    # Signals are held: the first optimiser makes torch import libraries that abort the process if a
    # signal raises an exception in them.
    with stop_on_signals(), signals_held(), locked(folder):
        remove_stale(folder)
        run = RecordedRun(config, job, folder, picture, guide)
        run.complete()
    return run


def _checked(config: TrainConfig, folder: Path, picture: Path) -> Job:
    """Return the job of a run after checking its settings and all paths."""
    job = prepare(config)
    kept = [folder / name for name in (PASTICHE, CONTENT, RECORD)]
    if os.path.realpath(picture) == os.path.realpath(folder / PASTICHE):
        kept.remove(folder / PASTICHE)
    check_outputs([picture, *kept], files_read(config))
    return job


def _print_outcome(run: RecordedRun) -> None:
    outcome, job = run.outcome, run.job
    if outcome.losses:
        print("  ".join(f"{name} {value:.4g}" for name, value in outcome.losses.items()))
    how = "done in" if outcome.is_whole else "stopped early after"
    print(f"{how} {run.seconds:.1f} s, {outcome.steps} steps, {job.device}, {job.precision}")
    if (run.folder / CHECKPOINT).exists():
        print(f"go on with resume={run.folder}")
    print(run.picture)
