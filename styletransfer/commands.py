"""The command `train`; each other command is in the file `commands.py` of its own folder."""

from styletransfer.train import train

__all__ = ["train"]
