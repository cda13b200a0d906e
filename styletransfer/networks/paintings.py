"""Reads the style images for the training and the use of style networks."""

from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.job.sources import check_side
from styletransfer.pictures import images
from styletransfer.pictures.margins import crop_margins
from styletransfer.pictures.transparency import crop_transparent, fill_transparent


def style_image(path: str, size: int, least: int) -> Tensor:
    """Return a file's picture (1, 3, h, w) without margins, its longer side `size`.

    Fully transparent margins and margins of one colour are cut off.
    (UserError if the file cannot be read, or if the shorter side would be below `least` pixels.)
    """
    picture = crop_margins(crop_transparent(images.read(path)))
    check_side(picture)
    image = fill_transparent(images.resize_picture(picture, size))
    height, width = image.shape[2:]
    if min(height, width) < least:
        raise UserError(
            f"{path} comes down to {width} x {height} pixels, and the deepest layer needs {least}; "
            f"raise style_size={size}, or name shallower layers"
        )
    return image
