"""Small versions of pictures: for the page, as data URIs, and for the contact sheet."""

import base64
import io
import math
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from styletransfer.pictures import images
from styletransfer.pictures.convert import small_picture

# Longer sides in pixels: of a page's previews, the fewer the larger, and of the sheet's pictures.
LARGEST, SMALLEST, THUMBNAIL = 960, 320, 256
MANY = 24
"""Runs up to which previews have their full side; beyond, the page's size grows no more."""
QUALITY = 85


@dataclass(frozen=True)
class Preview:
    """A picture, made small.

    Attributes:
        uri: a JPEG as a data URI, for the page.
        width: of it, in pixels.
        height: of it.
        thumbnail: for the contact sheet.
    """

    uri: str
    width: int
    height: int
    thumbnail: Image.Image


def preview_side(count: int) -> int:
    """Return the longer side in pixels of each of so many previews."""
    return max(SMALLEST, min(LARGEST, round(LARGEST * math.sqrt(MANY / max(count, 1)))))


def make_preview(path: Path, side: int) -> Preview:
    """Return a picture at most `side` pixels long, on white where it is transparent.

    Raises:
        UserError: it cannot be read.
    """
    image = small_picture(images.read(path), side)
    buffer = io.BytesIO()
    image.save(buffer, format="JPEG", quality=QUALITY)
    code = base64.b64encode(buffer.getvalue()).decode("ascii")
    small = image.copy()
    small.thumbnail((THUMBNAIL, THUMBNAIL), Image.Resampling.LANCZOS)
    return Preview(f"data:image/jpeg;base64,{code}", image.width, image.height, small)
