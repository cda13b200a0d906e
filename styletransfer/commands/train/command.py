"""Stylise one picture after another: `python scripts/train.py content=A.jpg style=B.jpg`.

Without arguments it stylises the bundled pictures. Every key is explained in
`styletransfer/config.py`; `--help` shows the composed config, and `dry_run=true` prints what
would be done, with estimated memory and time, and writes nothing.
"""

from pathlib import Path

from styletransfer.commands.train.run import train
from styletransfer.config import TrainConfig
from styletransfer.errors import UserError
from styletransfer.optimize.job import prepare
from styletransfer.optimize.plan import plan


def main(config: TrainConfig, folder: Path) -> None:
    """Run one style transfer and say where the picture is."""
    if config.dry_run:
        print(plan(prepare(config)))
        return
    outcome = train(config, folder)
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
    print(outcome.picture)
    if result.problem is not None:
        raise UserError(result.problem)
