"""Optimises a picture. Read `run.py` first: it makes the steps at each scale (picture size).

This package knows the picture, its losses and their gradient; `runs` writes files and folders.
"""

from styletransfer.optimize.iterate import Iterate, Outcome
from styletransfer.optimize.run import Run

__all__ = ["Iterate", "Outcome", "Run"]
