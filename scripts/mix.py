"""Mix a pastiche with its content image: `scripts/mix.py RUN strength=0.6 output=y.png`."""

from styletransfer.cli.hydrated import run_command
from styletransfer.runs.commands.mix import mix

if __name__ == "__main__":
    run_command(mix)
