"""Cuts off the uniform margins of style images, such as a white mat or a black line.

Style losses count all pixels of a style image, so a pastiche would get margins of its own. A margin
ends at a row or column of which at least half differs in colour. The paper around a drawing usually
ends at single lines, in rows that are mostly paper, so it is not cut off.
"""

import logging
from dataclasses import replace

import torch
from torch import Tensor

from styletransfer.pictures.images import Picture

logger = logging.getLogger(__name__)

# A row belongs to a margin if at least the share PURE of its pixels is within UNIFORM of the
# margin's colour in each channel (0 to 1). Scans and JPEG files need this tolerance.
UNIFORM, PURE = 8 / 255, 0.995
# A margin ends at the first row in which at least the share FILLED of the pixels differs from the
# margin's colour by more than CLEAR. Because an edge may be blurred, this row is searched among
# several rows after the uniform ones: the fraction BLURRED of the height, at least 2 rows.
FILLED, CLEAR, BLURRED = 0.5, 24 / 255, 1 / 128
# Largest share of the height or width that is cut off at one side, so that a picture of nearly one
# colour stays whole.
WIDEST = 0.25
# Side of a picture -> number of counterclockwise turns by 90 degrees that bring it to the top.
SIDES = {"top": 0, "right": 1, "bottom": 2, "left": 3}


def crop_margins(picture: Picture) -> Picture:
    """Cut off the uniform margins of a picture, also several nested ones, and log their widths.

    A picture with transparent pixels stays as it is.
    """
    if picture.alpha is not None and picture.alpha.min() < 1:
        return picture
    rgb, cut = picture.rgb, dict.fromkeys(SIDES, 0)
    least = [round((1 - 2 * WIDEST) * length) for length in picture.size]
    found = True
    while found:
        found = False
        for side, turns in SIDES.items():
            turned = torch.rot90(rgb, turns, (2, 3))
            width = margin(turned[0])
            if width and turned.shape[2] - width >= least[turns % 2]:
                rgb = torch.rot90(turned[:, :, width:], -turns, (2, 3))
                cut[side] += width
                found = True
    if not any(cut.values()):
        return picture
    widths = ", ".join(f"{width} at the {side}" for side, width in cut.items() if width)
    logger.info("%s: cut off uniform margins, in pixels: %s", picture.name, widths)
    return replace(picture, rgb=rgb.contiguous(), alpha=None)


def margin(rgb: Tensor) -> int:
    """Return how many rows of rgb (3, H, W) to cut off at the top: a uniform margin and its blur.

    The result is 0 if no clear edge follows the margin.
    """
    height = rgb.shape[1]
    if height < 4:
        return 0
    blurred = max(2, round(BLURRED * height))
    top = rgb[:, : round(WIDEST * height) + blurred + 1]
    color = top[:, 0].median(1).values[:, None, None]
    apart = (top - color).abs().amax(0)
    is_uniform = (apart <= UNIFORM).float().mean(1) >= PURE
    width = int(is_uniform.long().cumprod(0).sum())
    filled = (apart[width : width + blurred] > CLEAR).float().mean(1) >= FILLED
    return width + int(filled.long().argmax()) if width and filled.any() else 0
