"""Small versions of pictures, for pages."""

import numpy as np
from PIL import Image

from styletransfer.pictures import images
from styletransfer.pictures.convert import to_array
from styletransfer.pictures.images import Picture


def small_picture(picture: Picture, side: int) -> Image.Image:
    """Return a picture at most `side` pixels long, RGB, on white where it is transparent."""
    if max(picture.size) > side:
        picture = images.resize_picture(picture, side)
    alpha = 1.0 if picture.alpha is None else picture.alpha
    on_white = to_array((1.0 + alpha * (picture.rgb - 1.0)).clamp(0.0, 1.0))
    return Image.fromarray((on_white * 255).round().astype(np.uint8))
