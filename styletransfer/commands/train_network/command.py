"""Train a network that paints in one pass: `scripts/train_network.py style=PAINTING`.

Interrupted, it goes on where it ended when the same command is given again. The result paints by
`python scripts/apply.py network=outputs/networks/NAME/network.safetensors input=PHOTO output=FILE`.
`dry_run=true` measures what a step costs in each loss mode, and writes nothing.
Several processes share the work by `torchrun --nproc-per-node=2 scripts/train_network.py ...`.
"""

from pathlib import Path

from styletransfer.commands.train_network.cost import report, seconds_a_step
from styletransfer.commands.train_network.prepare import prepare
from styletransfer.commands.train_network.run import train_network
from styletransfer.config import TrainNetworkConfig
from styletransfer.errors import UserError
from styletransfer.system.launch import place


def main(config: TrainNetworkConfig, folder: Path) -> None:
    """Train, and say where the network is; or say what a step costs."""
    if config.dry_run:
        if place().count > 1:
            raise UserError("dry_run=true measures one process; start it without torchrun")
        job = prepare(config)
        print(report(job, seconds_a_step(job)))
        return
    made = train_network(config, folder)
    if place().rank == 0:
        print(made)
