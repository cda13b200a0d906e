"""Rotated pictures, cropped so that no empty corner is visible."""

import math
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import grid_sample

from styletransfer.pictures.images import Picture, resampled

_ROUNDING = 1e-6  # pixels added before rounding down: rounding errors can turn 6 into 5.9999999


def rotated(picture: Picture, degrees: float) -> Picture:
    """Rotate a picture counterclockwise, and crop it to the largest upright rectangle inside.

    Multiples of 90 degrees only move pixels. Other angles resample (bicubic), as `resampled` does.
    A side of a small or narrow picture may have 0 pixels then.
    """
    if degrees % 90 == 0 and picture.alpha is not None:
        rgb, alpha = (_turned(layer, degrees) for layer in (picture.rgb, picture.alpha))
        return replace(picture, rgb=rgb, alpha=alpha)
    return resampled(picture, lambda image: _turned(image, degrees).clamp(0.0, 1.0))


def inner_size(size: tuple[int, int], degrees: float) -> tuple[int, int]:
    """Return (height, width) of the largest upright rectangle in a rotated picture, rounded down.

    With s and c the absolute sine and cosine, an h x w rectangle fits into a rotated H x W one if

        w c + h s <= W   and   w s + h c <= H.

    If only the inequality of the short side limits the area, it is largest where the two terms on
    the left are equal. If this violates the other inequality, both are equalities. Source: Coproc,
    "Rotate image and crop out black borders", https://stackoverflow.com/a/16778797.
    """
    height, width = size
    s, c = (abs(f(math.radians(degrees % 360))) for f in (math.sin, math.cos))
    short, long = min(size), max(size)
    if short <= 2.0 * s * c * long:
        beside, along = short / 2.0 / c, short / 2.0 / s
        inner = (beside, along) if height == short else (along, beside)
    else:
        double = c * c - s * s
        inner = ((height * c - width * s) / double, (width * c - height * s) / double)
    return math.floor(inner[0] + _ROUNDING), math.floor(inner[1] + _ROUNDING)


def _turned(image: Tensor, degrees: float) -> Tensor:
    """Rotate (N, C, H, W) counterclockwise, and crop it to `inner_size`, without empty corners."""
    if degrees % 90 == 0:
        return torch.rot90(image, int(degrees % 360 // 90), (2, 3)).contiguous()
    height, width = image.shape[2:]
    inner = inner_size((height, width), degrees)
    y, x = (torch.arange(side, dtype=torch.float64) - (side - 1) / 2.0 for side in inner)
    s, c = (f(math.radians(degrees % 360)) for f in (math.sin, math.cos))
    # With y pointing down, the pixel at (x, y) from the centre takes its colour from the point
    # (x c - y s, x s + y c) of the unrotated image. The unit of `grid_sample` is half a side.
    across = (x[None, :] * c - y[:, None] * s) * (2.0 / width)
    down = (x[None, :] * s + y[:, None] * c) * (2.0 / height)
    grid = torch.stack([across, down], dim=2).to(image).expand(len(image), -1, -1, -1)
    return grid_sample(image, grid, "bicubic", "border", align_corners=False)
