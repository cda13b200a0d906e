"""Train a network that paints in one pass: `scripts/train_network.py style=PAINTING`.

Interrupted, it goes on where it ended when the same command is given again. The result paints by
`python scripts/apply.py network=outputs/networks/NAME/network.safetensors input=PHOTO output=FILE`.
Several processes share the work by `torchrun --nproc-per-node=2 scripts/train_network.py ...`.
"""

from pathlib import Path

from styletransfer.commands.train_network.run import train_network
from styletransfer.config import TrainNetworkConfig
from styletransfer.system.launch import place


def main(config: TrainNetworkConfig, folder: Path) -> None:
    """Train, and say where the network is."""
    made = train_network(config, folder)
    if place().rank == 0:
        print(made)
