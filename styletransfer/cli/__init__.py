"""The command line `styletransfer COMMAND KEY=VALUE ...`; scripts/COMMAND.py does the same."""

from styletransfer.cli.console import main

__all__ = ["main"]
