"""The command line `styletransfer COMMAND KEY=VALUE ...`; scripts/COMMAND.py does the same.

This package turns words into settings, and errors into one line. What a command does is in the
packages with a folder `commands/`.
"""

from styletransfer.cli.console import main

__all__ = ["main"]
