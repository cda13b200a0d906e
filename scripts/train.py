"""Paint one picture in the style of another: `scripts/train.py content=A.jpg style=B.jpg`."""

from styletransfer.cli.hydrated import run_command
from styletransfer.train import train

if __name__ == "__main__":
    run_command(train)
