"""Train a network that paints in one pass: `python scripts/train_network.py style=PAINTING`."""

from styletransfer.cli.hydrated import run_command
from styletransfer.networks.commands.train_network import train_network

if __name__ == "__main__":
    run_command(train_network)
