"""The console command `styletransfer`, of which every script is a thin alias."""

from styletransfer.cli.console import main, script

__all__ = ["main", "script"]
