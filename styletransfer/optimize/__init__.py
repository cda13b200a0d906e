"""The optimisation of a picture: read `run.py`, which makes its steps, scale by scale.

This package knows the picture, its losses and their gradient; `runs` writes files and folders.
"""

from styletransfer.optimize.iterate import Iterate, Outcome
from styletransfer.optimize.run import Run

__all__ = ["Iterate", "Outcome", "Run"]
