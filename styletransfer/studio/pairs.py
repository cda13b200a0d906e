"""Whether a style can be a painting of the photograph that the user chose as `style_source`."""

from typing import Any

from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.features import FeatureExtractor
from styletransfer.objective.paired import fits
from styletransfer.pictures.images import resize, size_of
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
    if source == style:
        raise UserError("choose the photograph here, and not the painting itself", SOURCE)
    (width, height), (across, down) = sizes[source], sizes[style]
    try:
        check_aspect((height, width), (down, across), source)
    except UserError as error:
        raise UserError(
            f"the photograph has {width} x {height} pixels and the style {across} x {down}: crop "
            "one of them to the shape of the other",
            SOURCE,
        ) from error


def misfit(extractor: FeatureExtractor, photograph: Tensor, painting: Tensor) -> str | None:
    """Return a warning if a painting seems to show something else than a photograph, or None.

    Both are (1, 3, H, W), of any size.
    """
    is_alike = fits(extractor, photograph, resize(painting, size_of(photograph)))
    return None if is_alike else UNLIKE
