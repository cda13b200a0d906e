"""The command line: `styletransfer COMMAND KEY=VALUE ...`, and the scripts, its aliases."""

from styletransfer.cli.console import main

__all__ = ["main"]
