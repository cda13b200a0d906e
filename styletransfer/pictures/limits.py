"""What a picture may cost, checked from its headers before anything is decoded."""

import re
from pathlib import Path

from styletransfer.errors import UserError

MAX_SCANS = 100
"""The most scans of a progressive JPEG: each is a pass over the picture, and about ten are usual.
"""

LONGEST_SIDE = 2**20
"""Of any picture that is made, in pixels: no memory holds it, and no size in torch overflows."""

# A JPEG marker; 0 behind 255 is a sample, and restarts (D0 to D7) belong to their scan.
_MARKER = re.compile(rb"\xff([\x01-\xcf\xd8-\xfe])")
_START_OF_IMAGE, _END_OF_IMAGE, _START_OF_SCAN = 0xD8, 0xD9, 0xDA


def check_size(path: Path, width: int, height: int, max_pixels: int) -> None:
    """Refuse a picture without pixels, or with more than `max_pixels`.

    Raises:
        UserError: it is refused.
    """
    if width < 1 or height < 1:
        raise UserError(f"{path} has {width} x {height} pixels; get an intact copy")
    if width * height > max_pixels:
        raise UserError(
            f"{path} has {width} x {height} = {width * height:,} pixels, "
            f"more than the limit of {max_pixels:,}; shrink it first"
        )


def check_scans(path: Path, jpeg: bytes) -> None:
    """Refuse a JPEG of more than `MAX_SCANS` scans.

    Raises:
        UserError: it is refused.
    """
    scans = 0
    position = 0
    while (found := _MARKER.search(jpeg, position)) and found[1][0] != _END_OF_IMAGE:
        marker, position = found[1][0], found.end()
        if marker in (_START_OF_IMAGE, 0x01):  # without a length
            continue
        scans += marker == _START_OF_SCAN
        position += int.from_bytes(jpeg[position : position + 2], "big")
    if scans > MAX_SCANS:
        raise UserError(
            f"{path} has {scans:,} JPEG scans, more than the limit of {MAX_SCANS}; "
            "save it anew as a baseline JPEG"
        )
