"""Label pictures: regions painted in flat colours, or numbered in an array."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.pictures.color_names import Color, color_name, hexadecimal
from styletransfer.pictures.convert import Source, as_picture, plane_as_array
from styletransfer.pictures.flat_colors import explained, local_ranges, painted_colors, snap
from styletransfer.pictures.regions import Regions

MOST = 12
"""The most regions of a label picture."""


def read_labels(source: Source, name: str) -> Regions:
    """Return the regions of a label picture.

    A region is all that is painted in one flat colour. Antialiased edges and the fringes of JPEG
    take the nearest of the colours beside them, as do specks and lines of less than 3 pixels in a
    picture with such edges. Pixels that are more than half transparent are in no region.

    Args:
        source: a picture of at most 12 flat colours; or an array or tensor (H, W) of bool or
            integers, one number per region, negative ones for no region.
        name: what messages call it, if it is no path.

    Raises:
        UserError: more colours, or no flat ones; a picture that cannot be read; nothing visible.
    """
    source = plane_as_array(source)
    if isinstance(source, np.ndarray) and source.ndim == 2 and source.dtype.kind in "bui":
        return _from_numbers(source, name)
    picture = as_picture(source, name)
    rgb = (picture.rgb[0].permute(1, 2, 0) * 255.0).round().to(torch.uint8).numpy()
    visible = np.ones(rgb.shape[:2], np.bool_)
    if picture.alpha is not None:
        visible = (picture.alpha[0, 0] >= 0.5).numpy()
    if not visible.any():
        raise UserError(f"{picture.name} is transparent everywhere; paint each region in a colour")
    ranges = local_ranges(rgb)
    colors, tolerance = painted_colors(rgb, ranges, visible)
    if not 0 < len(colors) <= MOST:
        raise _no_labels(picture.name, f"shows {len(colors)} flat colours")
    labels, far = snap(rgb, ranges, visible, colors, tolerance)
    snapped = int(far.sum())
    if not explained(far, visible):
        raise _no_labels(picture.name, f"has {snapped:,} pixels between its flat colours")
    layers = _one_hot(labels, len(colors))
    return Regions(_names(colors), layers, tuple(colors), snapped, picture.name)


def _no_labels(name: str, problem: str) -> UserError:
    return UserError(
        f"{name} {problem}; is it a photograph? Paint each region in one of at most {MOST} flat "
        "colours and save it as PNG"
    )


def _from_numbers(array: NDArray[Any], name: str) -> Regions:
    if array.size == 0:
        raise UserError(f"{name} is empty; give one number per pixel")
    numbers = np.unique(array[array >= 0])
    if not 0 < len(numbers) <= MOST:
        raise UserError(
            f"{name} has {len(numbers)} regions; number at least 1 and at most {MOST}, "
            "from 0 upwards"
        )
    layers = np.stack([array == number for number in numbers])[:, None]
    names = tuple(str(int(number)) for number in numbers)
    return Regions(names, torch.from_numpy(layers), source=name)


def _names(colors: list[Color]) -> tuple[str, ...]:
    """Name colours; those that would share a name are written as numbers."""
    names = [color_name(color) for color in colors]
    return tuple(
        hexadecimal(color) if names.count(name) > 1 else name
        for color, name in zip(colors, names, strict=True)
    )


def _one_hot(labels: NDArray[np.uint8], count: int) -> Tensor:
    return torch.stack([torch.from_numpy(labels == number)[None] for number in range(count)])
