"""Print how a picture was made: `scripts/info.py PICTURE`."""

from styletransfer.cli.hydrated import run_command
from styletransfer.runs.commands.info import info

if __name__ == "__main__":
    run_command(info)
