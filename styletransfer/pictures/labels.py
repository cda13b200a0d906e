"""Reads label pictures, in which all pixels of a region have one flat colour or one number."""

from itertools import combinations

import torch
from torch import Tensor
from torch.nn.functional import max_pool2d

from styletransfer.errors import UserError
from styletransfer.pictures.convert import Source, as_picture, is_floating, one_layer
from styletransfer.pictures.images import Picture
from styletransfer.pictures.regions import SAME, Color, Regions, distance

MAX_REGIONS = 12  # largest number of regions in a label picture
_MIN_SHARE = 1e-4  # a colour of a smaller fraction of the visible pixels is no region
# In a label picture, at least the fraction _FLAT_SHARE of the visible pixels is within _FLAT levels
# (of 255) of a region's colour. The fraction is at least 0.7 in label pictures, and at most 0.4 in
# photographs and paintings.
_FLAT, _FLAT_SHARE = 8, 0.6
# Largest number of a region. In PASCAL VOC's palette, the colour of each larger number is within
# SAME levels (of 255) of a smaller number's colour. The number 255 marks the edges of regions.
_LARGEST_NUMBER, _EDGE = 63, 255


def read_regions(source: Source, name: str) -> Regions:
    """Return the regions of a label picture, which is a file or a picture in memory.

    Each colour that `_flat_colors` returns is a region. Pixels of other colours, as on antialiased
    edges, are in the region of the nearest colour. Pixels that are more than half transparent are
    in no region. A grey picture, or an array or tensor (H, W) or (1, H, W) of integers, holds
    numbers of regions, as segmentation networks return them, if its visible pixels have a value
    from 1 to 63 and no larger value except 255: region n has the colour n of PASCAL VOC's palette,
    such as black for 0 and maroon for 1. `name` is the picture's name in messages if it is no file.
    (UserError if the picture cannot be read, is transparent everywhere, has more than 12 regions or
    no flat colour, has greys that are too similar, or looks like a photograph.)
    """
    picture = as_picture(one_layer(source, name), name)
    rgb = (picture.rgb[0] * 255.0).round().to(torch.int16)
    visible = torch.ones(picture.size, dtype=torch.bool)
    if picture.alpha is not None:
        visible = picture.alpha[0, 0] >= 0.5
    if not visible.any():
        raise UserError(f"{picture.name} is transparent everywhere; paint each region in a colour")
    numbers = None if is_floating(source) else _numbers(picture, visible)
    if numbers is not None:
        return _numbered(numbers, visible, picture.name)
    colors = _flat_colors(rgb, visible)
    if not 0 < len(colors) <= MAX_REGIONS:
        raise _not_labels(picture.name, f"shows {len(colors)} flat colours")
    _check_greys(rgb, visible, picture.name)
    differences = (rgb - rgb.new_tensor(color)[:, None, None] for color in colors)
    difference, labels = torch.stack([x.abs().amax(0) for x in differences]).min(0)
    flat = (difference[visible] <= _FLAT).float().mean()
    if flat < _FLAT_SHARE:
        between = int((1.0 - flat) * visible.sum())
        raise _not_labels(picture.name, f"has {between:,} pixels between its flat colours")
    return Regions(labels.where(visible, -1), tuple(colors), picture.name)


def _numbers(picture: Picture, visible: Tensor) -> Tensor | None:
    """Return the numbers (H, W) that a grey picture of 8 or 16 bits holds, or None for colours."""
    grey = picture.rgb[0, 0]
    if not torch.equal(picture.rgb[0], grey.expand(3, -1, -1)):
        return None
    for largest in (255, 65535):
        numbers = (grey * largest).round()
        shown = numbers[visible & (numbers != _EDGE)]
        is_whole = (numbers - grey * largest).abs().max() < 1e-2
        if is_whole and shown.numel() and 0 < shown.max() <= _LARGEST_NUMBER:
            return numbers.long()
    return None


def _numbered(numbers: Tensor, visible: Tensor, name: str) -> Regions:
    """Return the regions for the numbers (H, W) of a label picture, the largest region first."""
    values, counts = torch.unique(numbers[visible], return_counts=True)
    if len(values) > MAX_REGIONS:
        raise _not_labels(name, f"holds {len(values)} numbers of regions, up to {int(values[-1])}")
    found = values[counts.argsort(stable=True, descending=True)].tolist()
    labels = torch.full_like(numbers, -1)
    for region, number in enumerate(found):
        labels[(numbers == number) & visible] = region
    return Regions(labels, tuple(map(_voc_color, found)), name)


def _voc_color(number: int) -> Color:
    """Return a colour of PASCAL VOC's palette: bit 3 k + c of the number is bit 7 - k of channel c.

    The same is done by the function `VOClabelcolormap` of PASCAL VOC's VOCcode.
    """
    red, green, blue = (
        sum((number >> (3 * bit + channel) & 1) << (7 - bit) for bit in range(3))
        for channel in range(3)
    )
    return red, green, blue


def _check_greys(rgb: Tensor, visible: Tensor, name: str) -> None:
    """Raise UserError if two greys of a grey picture are too similar to be different regions."""
    greys = torch.unique(rgb[0][visible])
    if len(greys) > MAX_REGIONS or not torch.equal(rgb, rgb[:1].expand_as(rgb)):
        return
    for (first, *_), (second, *_) in combinations(sorted(_flat_colors(rgb, visible, same=0)), 2):
        if second - first <= SAME:
            problem = f"has the greys {first} and {second}, less than {SAME + 1} levels apart"
            raise UserError(f"{name} {problem}; paint each region in a colour of its own")


def _flat_colors(rgb: Tensor, visible: Tensor, same: int = SAME) -> list[Color]:
    """Return the colours that fill a square of 3 x 3 pixels somewhere, the most frequent first.

    Colours that are rare, or within `same` levels of a more frequent one, are left out. `rgb` is
    (3, H, W) from 0 to 255, and `visible` is (H, W) bool.
    """
    codes = rgb[0] * 65536.0 + rgb[1] * 256.0 + rgb[2]  # whole numbers that float32 holds exactly
    flat = max_pool2d(codes[None], 3, 1, 1)[0] == -max_pool2d(-codes[None], 3, 1, 1)[0]
    values, counts = torch.unique(codes[visible], return_counts=True)
    counts = counts.where(torch.isin(values, codes[visible & flat]), 0)
    colors: list[Color] = []
    for n in counts.argsort(stable=True).flip(0).tolist():
        code = int(values[n])
        color = (code >> 16, code >> 8 & 255, code & 255)
        if counts[n] < max(1, _MIN_SHARE * int(visible.sum())):
            break
        if all(distance(color, other) > same for other in colors):
            colors.append(color)
    return colors


def _not_labels(name: str, problem: str) -> UserError:
    return UserError(
        f"{name} {problem}; is it a photograph? Paint each region in one of at most {MAX_REGIONS} "
        "flat colours and save it as PNG"
    )
