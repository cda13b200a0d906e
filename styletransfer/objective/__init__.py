"""The function that style transfer minimises: the losses of a picture, and their gradient.

Read `whole.py` first. The package `tiling` computes the same in less memory. `targets.py` and
`matching.py` say what a picture is compared with, and `criterion.py` which losses act at which
layers.
"""

from styletransfer.objective.criterion import (
    SEARCHED,
    Criterion,
    check_size,
    check_tile,
    smallest_tile,
    tiles_need,
)
from styletransfer.objective.evaluation import Losses, gradient_at

__all__ = [
    "SEARCHED",
    "Criterion",
    "Losses",
    "check_size",
    "check_tile",
    "gradient_at",
    "smallest_tile",
    "tiles_need",
]
