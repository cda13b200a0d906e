"""Paint one picture in the style of another: `scripts/train.py content=A.jpg style=B.jpg`.

Without arguments it stylises the bundled pictures. Every key is explained in
`styletransfer/config/` and by `--help`; `dry_run=true` prints what would be done, with
estimated memory and time, and writes nothing. `resume=FOLDER` goes on where
the run in that folder was stopped.
"""

import sys
from pathlib import Path

from hydra.core.hydra_config import HydraConfig

from styletransfer.commands.train.resume import finished_picture, own_settings
from styletransfer.commands.train.run import Outcome, train
from styletransfer.config import TrainConfig
from styletransfer.errors import UserError
from styletransfer.optimize.plan import plan
from styletransfer.optimize.prepare import prepare


def main(config: TrainConfig, folder: Path) -> None:
    """Run one style transfer, or go on with one, and say where the picture is."""
    if config.resume not in (None, "auto"):
        folder = Path(config.resume)
        config = own_settings(config, folder, typed_keys())
    if config.dry_run:
        print(plan(prepare(config, enlarge=False)))
        return
    if picture := finished_picture(config, folder):
        print(f"already finished\n{picture}")
        return
    outcome = train(config, folder)
    tell(outcome, folder)
    if outcome.problem is not None:
        raise UserError(outcome.problem)
    if outcome.stopped is not None:
        sys.exit(outcome.stopped.status)


def tell(outcome: Outcome, folder: Path) -> None:
    """Print the losses, how the run ended, and where the picture is."""
    result = outcome.result
    losses = "  ".join(f"{name} {value:.4g}" for name, value in result.losses.items())
    if losses:
        print(losses)
    early = result.interrupted or result.problem is not None
    how = "stopped early after" if early else "done in"
    print(
        f"{how} {outcome.seconds:.1f} s, {result.steps} steps, "
        f"{outcome.device}, {outcome.precision}"
    )
    if (folder / "checkpoint.pt").exists():
        print(f"go on with resume={folder}")
    print(outcome.picture)


def typed_keys() -> list[str]:
    """Return the keys that were given on the command line, groups included."""
    if not HydraConfig.initialized():
        return []
    overrides = HydraConfig.get().overrides.task
    return [override.lstrip("+~").partition("=")[0].partition("@")[0] for override in overrides]
