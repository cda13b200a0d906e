"""Turned pictures, cut so that no empty corner shows."""

import math
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import grid_sample

from styletransfer.errors import UserError
from styletransfer.pictures.images import Picture, resampled
from styletransfer.pictures.regions import Regions

_SMALLEST = 8  # pixels a side that are left at least: less is nothing to take a style from
_ROUNDING = 1e-6  # what a side may lose to rounding of sines before it counts as a pixel less


def rotated(picture: Picture, degrees: float) -> Picture:
    """Turn a picture counterclockwise, and cut it to the largest upright rectangle inside.

    Multiples of 90 degrees only move pixels. Others resample (bicubic), as `resampled` does
    (UserError: fewer than 8 pixels a side are left, or `degrees` is not finite).
    """
    turn = _Turn(picture.size, degrees, picture.name)
    if turn.exact and picture.alpha is not None:
        return replace(picture, rgb=turn(picture.rgb), alpha=turn(picture.alpha))
    return resampled(picture, turn)


def rotated_regions(regions: Regions, degrees: float) -> Regions:
    """Turn and cut regions as `rotated` does their picture, labels to the nearest pixel's."""
    turn = _Turn(regions.size, degrees, regions.source)
    if turn.exact:
        return replace(regions, layers=turn(regions.layers))
    layers = turn(regions.layers.float(), "bilinear" if regions.soft else "nearest")
    how = f"it is turned by {degrees:g} degrees"
    return regions.changed(layers if regions.soft else layers > 0.5, how)


def inner_size(size: tuple[int, int], degrees: float) -> tuple[int, int]:
    """Return height and width of the largest upright rectangle inside a turned one, rounded down.

    With s and c the absolute sine and cosine, an h x w rectangle fits into a turned H x W one if

        w c + h s <= W   and   w s + h c <= H.

    Under the limit of the short side alone, the largest area has both terms equal. If that breaks
    the other limit, both are equalities. Source: Coproc, "Rotate image and crop out black borders",
    https://stackoverflow.com/a/16778797.
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


class _Turn:
    """Turns tensors (N, C, H, W) in [0, 1] counterclockwise and cuts them to `inner_size`."""

    def __init__(self, size: tuple[int, int], degrees: float, name: str) -> None:
        if not math.isfinite(degrees):
            raise UserError(f"{name} cannot be turned by {degrees} degrees; give a number")
        self.size, self.degrees = size, degrees % 360
        self.inner = height, width = inner_size(size, degrees)
        if not self.exact and min(height, width) < _SMALLEST:
            raise UserError(
                f"{name}, turned by {degrees:g} degrees, leaves {width} x {height} pixels without "
                f"empty corners; each side needs at least {_SMALLEST}"
            )

    @property
    def exact(self) -> bool:
        """Whether pixels only move."""
        return self.degrees % 90 == 0

    def __call__(self, image: Tensor, mode: str = "bicubic") -> Tensor:
        if self.exact:
            return torch.rot90(image, int(self.degrees // 90), (2, 3)).contiguous()
        y, x = (torch.arange(side, dtype=torch.float64) - (side - 1) / 2.0 for side in self.inner)
        s, c = (f(math.radians(self.degrees)) for f in (math.sin, math.cos))
        # Rows count downwards: counterclockwise, what lands at (x, y) from the centre was at
        # (x c - y s, x s + y c). The sampler's unit is half a side.
        across = (x[None, :] * c - y[:, None] * s) * (2.0 / self.size[1])
        down = (x[None, :] * s + y[:, None] * c) * (2.0 / self.size[0])
        grid = torch.stack([across, down], dim=2).to(image).expand(len(image), -1, -1, -1)
        turned = grid_sample(image, grid, mode, "border", align_corners=False)
        return turned.clamp(0.0, 1.0)
