"""Paint with a style network: `python scripts/apply.py network=FILE input=PHOTO output=FILE`."""

from styletransfer.cli.hydrated import run_command
from styletransfer.networks.commands.apply import apply

if __name__ == "__main__":
    run_command(apply)
