"""The optimisation of a picture: read `run.py`, which makes its steps, scale by scale.

It knows a picture, its losses and their gradient. Files and folders are the room `runs`.
"""

from styletransfer.optimize.iterate import Iterate, Outcome
from styletransfer.optimize.run import Run

__all__ = ["Iterate", "Outcome", "Run"]
