"""Reads the stored samples of a Pillow image, its stated colours and its orientation."""

import logging

import numpy as np
from PIL import Image, ImageFile

from styletransfer.errors import UserError
from styletransfer.formats.profiles import Samples
from styletransfer.formats.stated_colors import stated_colors
from styletransfer.formats.stored import ORIENTATION, Stored

logger = logging.getLogger(__name__)

# Pillow mode -> the mode to which an image is converted before its samples are read.
_MODES = {"1": "L", "L": "L", "LA": "L", "La": "L", "CMYK": "CMYK"} | dict.fromkeys(
    ("P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "YCbCr"), "RGB"
)
_EXIF_SIDES = (0xA002, 0xA003)  # EXIF's tags of a picture's width and height


def load_image(image: Image.Image, name: str, deep: Samples | None = None) -> Stored:
    """Return what a Pillow image stores; `deep`, if given, are its samples with 16 bits."""
    if image.mode not in _MODES and not image.mode.startswith("I;16"):
        raise UserError(f"{name} has {image.mode} colours; save it as RGB, grey or CMYK")
    stated = stated_colors(image, name)
    if deep is not None:
        samples = np.atleast_3d(deep)
        has_alpha = samples.shape[2] in (2, 4)
    elif image.mode.startswith("I;16"):
        samples, has_alpha = np.atleast_3d(np.asarray(image, dtype=np.uint16)), False
    else:
        image.load()
        has_alpha = image.has_transparency_data
        mode = _MODES[image.mode] + ("A" if has_alpha else "")
        samples = np.atleast_3d(np.asarray(image if image.mode == mode else image.convert(mode)))
    colour, alpha = (samples[..., :-1], samples[..., -1:]) if has_alpha else (samples, None)
    return Stored(colour, alpha, stated=stated, orientation=_orientation(image, name))


def _orientation(image: Image.Image, name: str) -> int:
    """Return the EXIF orientation that has not been applied to the image yet; 1 means upright.

    Pillow's `rotate`, `transpose` and other methods that return a new image keep the EXIF tag. The
    values 5 to 8 swap width and height: if only one of the image and its EXIF sides is wider than
    high, the image was turned already, and the result is 1. If the sides cannot show this, as with
    the values 2 to 4, the result is the tag's value, and a warning says so.
    """
    try:
        exif = image.getexif()
        orientation = int(exif.get(ORIENTATION, 1))
        width, height = (int(exif.get_ifd(0x8769).get(tag, 0)) for tag in _EXIF_SIDES)
    except Exception:  # damaged metadata must not keep the picture from being read
        return 1
    if isinstance(image, ImageFile.ImageFile) or orientation not in range(2, 9):
        return orientation
    if orientation >= 5 and width != height and image.width != image.height:
        return orientation if (width > height) == (image.width > image.height) else 1
    logger.warning(
        "%s is turned by its EXIF orientation %d; if you turned it before, take the tag away: "
        "del image.getexif()[%d]",
        *(name, orientation, ORIENTATION),
    )
    return orientation
