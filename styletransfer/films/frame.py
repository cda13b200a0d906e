"""One frame of a film: its pixels and its time; and the largest size of a frame."""

import os
from fractions import Fraction
from typing import NamedTuple

from torch import Tensor

from styletransfer.errors import UserError

# Largest number of pixels of a frame: 8192 x 8192, the size of films for planetarium domes.
MAX_PIXELS = 2**26


class Frame(NamedTuple):
    """A Frame is one frame of a film, rotated upright, with its time and duration in seconds."""

    image: Tensor  # (1, 3, H, W), float32, sRGB in [0, 1], on the CPU
    time: Fraction  # in seconds from the film's start
    # Time until the next frame. For all frames of an animation, and for the last frame of any film:
    # the duration in the file. If there is none (for an animation, none above 10 ms): 0.1 s in an
    # animation, else 1 / rate.
    duration: Fraction


def check_size(path: str | os.PathLike[str], width: int, height: int) -> None:
    """Raise UserError if the frames of a film have more than MAX_PIXELS."""
    if width * height > MAX_PIXELS:
        raise UserError(
            f"{path} has frames of {width} x {height} = {width * height:,} pixels, "
            f"more than the limit of {MAX_PIXELS:,}; shrink it first"
        )
