"""Defines what a decoder returns, and checks that a picture is not too large to be read."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from styletransfer.errors import UserError
from styletransfer.formats.profiles import Samples

# Largest number of pixels of a picture that is read. As float32 RGB they take 1.6 GB. Reading them
# needs up to 2.2 GB for 8-bit RGB, and up to 3.8 GB for a 16-bit TIFF with alpha.
MAX_PIXELS = 2**27
_MAX_SIDE = 2**20  # longest side in pixels: each row takes time, even in a narrow picture
ORIENTATION = 274  # number of the orientation tag in TIFF and EXIF
RAW = "is a RAW photograph; export it as JPEG or TIFF with the camera's or another program"


@dataclass(frozen=True)
class Stored:
    """A Stored is what a picture file or a Pillow image stores, before conversion to sRGB."""

    colour: Samples  # (H, W, C): grey, RGB, or CMYK in which the largest value is full ink
    alpha: Samples | None = None  # (H, W, 1)
    premultiplied: bool = False  # whether the colours are already multiplied by alpha
    # An ICC profile (possibly empty, in a broken file), a colour space, or None for sRGB.
    stated: Any = None
    orientation: int = 1  # EXIF's number from 1 (upright) to 8


def check_size(path: Path, width: int, height: int) -> None:
    """Raise UserError if a picture has no pixel, more than MAX_PIXELS, or too long a side."""
    if width < 1 or height < 1:
        raise UserError(f"{path} has {width} x {height} pixels; get an intact copy")
    if max(width, height) > _MAX_SIDE:
        size = f"{width} x {height} pixels, and a side above {_MAX_SIDE:,}"
        raise UserError(f"{path} has {size}; cut it into parts")
    if width * height > MAX_PIXELS:
        raise UserError(
            f"{path} has {width} x {height} = {width * height:,} pixels, "
            f"more than the limit of {MAX_PIXELS:,}; shrink it first"
        )
