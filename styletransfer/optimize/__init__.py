"""The optimisation of a picture: read `run.py`, which makes its steps, scale by scale."""

from styletransfer.optimize.iterate import Iterate, Outcome
from styletransfer.optimize.run import Run

__all__ = ["Iterate", "Outcome", "Run"]
