"""Run one job under every loss mode: `python scripts/compare.py content=A.jpg style=B.jpg`."""

from styletransfer.cli.hydrated import run_command
from styletransfer.lessons.commands.compare import compare

if __name__ == "__main__":
    run_command(compare)
