"""Paint one picture in the style of another: `scripts/train.py content=A.jpg style=B.jpg`.

This file shows a run from start to end. Each name leads to the next file to read:

1. The settings are `configs/train.yaml` and the command line, as a `TrainConfig`.
2. `prepare` reads the pictures and builds the network. It returns a `Job`, which is ready to run.
3. Each step of a `Run` evaluates the objective: the network, with loss layers in it, runs forward,
   and the loss mode differentiates the losses. Then the optimiser changes the picture.
4. `recorded` watches the loop: after each step it writes metrics and, if it is time, a checkpoint;
   at the end it writes the pastiche.

The functions import what they need: torch takes two seconds to import, and `--help` needs no torch.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from styletransfer.errors import UserError
from styletransfer.settings import TrainConfig
from styletransfer.settings.registry import command

if TYPE_CHECKING:
    from styletransfer.runs.recording import Recording


@command(repeatable=True)
def train(config: TrainConfig, folder: Path) -> None:
    """Paint one picture in the style of another."""
    from styletransfer.job.memory import plan
    from styletransfer.job.prepare import prepare
    from styletransfer.runs.resume import continued, finished_picture, tidy

    # With resume=FOLDER, this returns the config and the folder of the run in FOLDER.
    config, folder = continued(config, folder)
    finished = finished_picture(config, folder)
    if config.dry_run:
        print(plan(prepare(config, enlarge=False)))
    elif finished is not None:
        tidy(folder, finished)
        is_json = config.format == "json"
        told = as_json(finished, folder, "finished") if is_json else f"already finished\n{finished}"
        print(told)
    else:
        tell(paint(config, folder))


def paint(config: TrainConfig, folder: Path) -> "Recording":
    """Stylise one picture and write it, with the other files of the run, into `folder`.

    Raises the errors of `prepare`, before anything is written, and the errors of `recorded`.
    """
    from styletransfer.job.prepare import prepare
    from styletransfer.optimize import Run
    from styletransfer.runs.recording import files_written, recorded

    job = prepare(config, outputs=files_written(config, folder), progress=True)
    run = Run(job)
    with recorded(run, config, folder) as record:
        for step in run:
            record(step)
    return record


def tell(record: "Recording") -> None:
    """Print how a run has ended, and the path of its picture; exit if a signal stopped the run.

    Raises UserError if the run gave up, or if the picture could not be written to the wanted path.
    """
    outcome, job = record.outcome, record.run.job
    if record.config.format == "json":
        made = {"seconds": record.seconds, "steps": outcome.steps, "losses": outcome.losses}
        print(as_json(record.picture, record.folder, record.status, **made))
    else:
        if outcome.losses:
            print("  ".join(f"{name} {value:.4g}" for name, value in outcome.losses.items()))
        how = "done in" if record.status == "finished" else "stopped early after"
        print(f"{how} {record.seconds:.1f} s, {outcome.steps} steps, {job.device}, {job.precision}")
        if record.checkpoint.exists():
            print(f"go on with resume={record.folder}")
        print(record.picture)
    if record.problem is not None:
        raise UserError(record.problem)
    if record.stopped is not None:
        sys.exit(record.stopped.status)


def as_json(picture: Path, folder: Path, status: str, **made: object) -> str:
    """Return what `format=json` prints of a run, with `made`: seconds, steps and losses."""
    from styletransfer.system.files import to_json

    return to_json({"status": status, "picture": str(picture), "folder": str(folder), **made})
