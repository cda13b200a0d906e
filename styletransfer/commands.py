"""The command of the file train.py; the other commands are in the rooms' own `commands.py`."""

from styletransfer.train import train

__all__ = ["train"]
