"""Paint one picture in the style of another: `scripts/train.py content=A.jpg style=B.jpg`.

Without arguments it stylises the bundled pictures. Every key is explained in
`styletransfer/settings/` and by `--help`; `dry_run=true` prints what would be done, with estimated
memory and time, and writes nothing. `resume=FOLDER` goes on where the run in that folder was
stopped.
"""

import sys
from pathlib import Path

from hydra.core.hydra_config import HydraConfig

from styletransfer.errors import UserError
from styletransfer.job.prepare import prepare
from styletransfer.runs.changes import in_turn
from styletransfer.runs.folder import CHECKPOINT
from styletransfer.runs.paint import FinishedRun, paint, plan
from styletransfer.runs.recipe import finished_picture, own_settings
from styletransfer.settings import TrainConfig


def main(config: TrainConfig, folder: Path) -> None:
    """Run one style transfer, or go on with one, and say where the picture is."""
    begun = _begin(config, folder)
    if begun is None:
        return
    config, folder = begun
    run = paint(config, folder)
    _tell(run, folder)
    if run.problem is not None:
        raise UserError(run.problem)
    if run.stopped is not None:
        sys.exit(run.stopped.status)


def _begin(config: TrainConfig, folder: Path) -> tuple[TrainConfig, Path] | None:
    """Return the run's settings and folder, or None, having said why (UserError: bad input)."""
    if config.resume not in (None, "auto"):
        folder = Path(config.resume)
        config = own_settings(config, folder, _typed_keys())
    if config.dry_run:
        _tell_plans(config)
        return None
    if picture := finished_picture(config, folder):
        print(f"already finished\n{picture}")
        return None
    return config, folder


def _tell_plans(config: TrainConfig) -> None:
    """Print what a run would do, and after each of its changes (UserError: bad input)."""
    later = in_turn(config, config.changes)
    first = prepare(config, enlarge=False)
    jobs = [first, *(prepare(changed, enlarge=False, like=first) for changed in later)]
    begins = [0, *(change.after for change in config.changes)]
    for index, (after, job) in enumerate(zip(begins, jobs, strict=True)):
        if after in begins[index + 1 :]:  # another change comes before a step is made
            continue
        if after:
            print(f"after {after} steps, of these scales those that are left:")
        print(plan(job))


def _tell(run: FinishedRun, folder: Path) -> None:
    result = run.result
    losses = "  ".join(f"{name} {value:.4g}" for name, value in result.losses.items())
    if losses:
        print(losses)
    early = result.interrupted or result.problem is not None
    how = "stopped early after" if early else "done in"
    print(f"{how} {run.seconds:.1f} s, {result.steps} steps, {run.device}, {run.precision}")
    if (folder / CHECKPOINT).exists():
        print(f"go on with resume={folder}")
    print(run.picture)


def _typed_keys() -> list[str]:
    if not HydraConfig.initialized():
        return []
    overrides = HydraConfig.get().overrides.task
    return [override.lstrip("+~").partition("=")[0].partition("@")[0] for override in overrides]
