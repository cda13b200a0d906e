"""The command line `styletransfer COMMAND KEY=VALUE ...`; scripts/COMMAND.py does the same.

It turns words into settings, and errors into one line. What a command does stands in other rooms.
"""

from styletransfer.cli.console import main

__all__ = ["main"]
