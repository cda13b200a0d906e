"""Whether a style can be a painting of the photograph that the user chose as `style_source`."""

from typing import Any

from styletransfer.errors import UserError, about
from styletransfer.pictures.masks import check_aspect
from styletransfer.studio.controls import SOURCE

UNLIKE = (
    "This photograph and the style seem to show different things. A painting should follow its "
    "photograph line for line."
)


def check_pair(source: str, style: str, sizes: Any) -> None:
    """Raise UserError if a photograph and a style are the same path, or differ in aspect ratio.

    `sizes` maps paths to (width, height) in pixels.
    """
    with about(SOURCE):
        if source == style:
            raise UserError("choose the photograph here, and not the painting itself")
        check_aspect(sizes[source][::-1], sizes[style][::-1], "the photograph")
