"""Which colours a picture is painted in, and which of them each pixel belongs to.

A painted colour fills a square of 3 x 3 pixels somewhere; the colours between two regions, made by
antialiasing, by resampling or by JPEG, fill none. Where every colour that occurs is a painted one
the picture is clean, and colours are told apart exactly. Otherwise colours within 32 levels are
one, since JPEG moves them. Limits are in levels of 255; they were tried on drawn labels (JPEG of
quality 20 to 90, resized, blurred) and on photographs and paintings (as they are, grey, blurred).
A region of few blocks of a JPEG may have no flat pixel and be missed; `explained` notices most.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import max_pool2d

from styletransfer.pictures.color_names import Color

Pixels = NDArray[np.uint8]
Selection = NDArray[np.bool_]

SAME = 32
"""The largest difference of a channel within one colour of a picture that is not clean."""

# The side of a JPEG's blocks in pixels. A fringe lies between the colours in its block and around.
_BLOCK = 8

# The largest share of pixels between the colours: of drawn labels it is below 0.16, of photographs
# above 0.4. And of whole blocks: of drawn labels below 0.001, of photographs above 0.09.
_BETWEEN, _BLOCKS_BETWEEN = 0.25, 0.002


@dataclass(frozen=True)
class _Look:
    """How painted colours are looked for."""

    flat: int
    """The largest range of a channel within a flat square."""
    peak: int
    """Most of a painted colour's flat pixels are this near to it; smooth shades have no peak."""
    share: float
    """The least share of the picture's pixels that a painted colour's flat ones are."""


_STRICT = _Look(flat=4, peak=4, share=1e-4)
# For small regions of a JPEG, among the pixels that no colour of the first look explains.
_LENIENT = _Look(flat=12, peak=16, share=5e-4)
_MOST = 0.75
_FAR = 1000


def local_ranges(rgb: Pixels) -> Pixels:
    """Return (H, W), the largest range of a channel in the 3 x 3 pixels around each."""
    ranges = np.zeros(rgb.shape[:2], np.uint8)
    for channel in range(3):
        samples = torch.from_numpy(rgb[..., channel].astype(np.float32))[None]
        spread = max_pool2d(samples, 3, 1, 1) + max_pool2d(-samples, 3, 1, 1)
        np.maximum(ranges, spread[0].numpy().astype(np.uint8), out=ranges)
    return ranges


def painted_colors(rgb: Pixels, ranges: Pixels, visible: Selection) -> tuple[list[Color], int]:
    """Return the painted colours, and how far apart the pixels of one may be.

    Args:
        rgb: (H, W, 3).
        ranges: (H, W), what `local_ranges` says of it.
        visible: (H, W), the pixels that count, at least one.

    Returns:
        The colours, and 0 for a clean picture or else `SAME`.
    """
    pixels, ranges = rgb[visible], ranges[visible]
    values, counts = np.unique(_codes(pixels), return_counts=True)
    if len(values) == len(np.unique(_codes(pixels[ranges == 0]))):
        order = counts.argsort(kind="stable")[::-1]
        return [_color(code) for code in values[order]], 0
    colors = _peaks(pixels[ranges <= _STRICT.flat], _STRICT, len(pixels))
    far = np.ones(len(pixels), np.bool_)
    for color in colors:
        far &= _difference(pixels, color) > SAME
    if far.mean() <= _BETWEEN:
        colors += _peaks(pixels[far & (ranges <= _LENIENT.flat)], _LENIENT, len(pixels))
    return colors, SAME


def snap(
    rgb: Pixels, ranges: Pixels, visible: Selection, colors: list[Color], tolerance: int
) -> tuple[Pixels, Selection]:
    """Give each visible pixel one of the painted colours.

    Flat pixels take the nearest colour. The others lie between regions and take the nearest of
    the colours beside them, so that antialiasing between black and white makes no grey region.

    Args:
        rgb: (H, W, 3).
        ranges: (H, W), what `local_ranges` says of it.
        visible: (H, W), the pixels that count.
        colors: at most 255.
        tolerance: both as `painted_colors` returns them.

    Returns:
        (H, W), the number of each pixel's colour, `len(colors)` where nothing is visible; and
        (H, W), the pixels that were farther than `tolerance` from the colour they took.
    """
    labels = np.full(visible.shape, len(colors), np.uint8)
    nearest = np.full(visible.shape, _FAR, np.int16)
    settled = visible & (ranges <= _LENIENT.flat) if tolerance else visible
    for number, color in enumerate(colors):
        difference = _difference(rgb, color)
        better = settled & (difference <= tolerance) & (difference < nearest)
        labels[better] = number
        nearest[better] = difference[better]
    fringe = np.nonzero(visible & (labels == len(colors)))
    far = np.zeros(visible.shape, np.bool_)
    if not fringe[0].size:
        return labels, far
    differences = np.stack([_difference(rgb[fringe], color) for color in colors])
    beside = [_near(labels == number, fringe) for number in range(len(colors))]
    choice = (differences + np.where(beside, 0, _FAR)).argmin(0)
    labels[fringe] = choice
    far[fringe] = np.take_along_axis(differences, choice[None], 0)[0] > tolerance
    return labels, far


def explained(far: Selection, visible: Selection) -> bool:
    """Tell whether the painted colours explain a picture but for the edges between them.

    Args:
        far: (H, W), the pixels far from the colour they took, as `snap` returns them.
        visible: (H, W), the pixels that count.
    """
    samples = torch.from_numpy(far)[None].float()
    whole_blocks = -max_pool2d(-samples, min(_BLOCK, *far.shape))
    between = float(far.sum() / visible.sum())
    return between <= _BETWEEN and float(whole_blocks.mean()) <= _BLOCKS_BETWEEN


def _peaks(pixels: Pixels, look: _Look, total: int) -> list[Color]:
    """Take the most frequent colour with all within `SAME` of it, and so on with the others.

    Args:
        pixels: (N, 3), flat ones.
        look: what is a painted colour.
        total: how many pixels the picture has.
    """
    values, counts = np.unique(_codes(pixels), return_counts=True)
    colors = np.stack([values >> 16, values >> 8 & 255, values & 255], axis=1).astype(np.uint8)
    found: list[Color] = []
    while counts.sum() >= max(look.share * total, 1):
        top = _color(values[counts.argmax()])
        difference = _difference(colors, top)
        cluster = counts[difference <= SAME].sum()
        peak = counts[difference <= look.peak].sum()
        if cluster >= look.share * total and peak >= _MOST * cluster:
            found.append(top)
        rest = difference > SAME
        values, counts, colors = values[rest], counts[rest], colors[rest]
    return found


def _difference(rgb: Pixels, color: Color) -> NDArray[np.int16]:
    """Return (...), the largest difference of a channel of (..., 3) from a colour."""
    difference = np.zeros(rgb.shape[:-1], np.int16)
    for channel, level in enumerate(color):
        np.maximum(difference, np.abs(rgb[..., channel].astype(np.int16) - level), out=difference)
    return difference


def _codes(pixels: Pixels) -> NDArray[np.uint32]:
    """Return (N, 3) as one number per pixel."""
    red, green, blue = pixels.astype(np.uint32).T
    codes: NDArray[np.uint32] = red << 16 | green << 8 | blue
    return codes


def _near(selected: Selection, places: tuple[NDArray[np.intp], ...]) -> Selection:
    """Tell of each place (rows, columns) whether a selected pixel is in its block or beside it."""
    samples = torch.from_numpy(selected)[None].float()
    blocks = max_pool2d(samples, _BLOCK, _BLOCK, ceil_mode=True)
    near = max_pool2d(blocks, 3, 1, 1)[0].numpy() > 0
    found: Selection = near[places[0] // _BLOCK, places[1] // _BLOCK]
    return found


def _color(code: np.uint32) -> Color:
    return int(code) >> 16, int(code) >> 8 & 255, int(code) & 255
