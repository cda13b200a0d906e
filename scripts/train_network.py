"""Train a network that paints in one pass: `python scripts/train_network.py style=PAINTING`."""

from styletransfer.cli.hydrated import script
from styletransfer.networks.commands.train_network import train_network

main = script(train_network)

if __name__ == "__main__":
    main()
