"""Reads regions from label pictures in flat colours, arrays of numbers, or grey masks."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import max_pool2d

from styletransfer.errors import UserError
from styletransfer.pictures.convert import Source, as_picture
from styletransfer.pictures.regions import SAME, Color, Regions, color_names, distance
from styletransfer.settings.paths import expanded, in_folder

MOST = 12  # largest number of regions in a label picture
# Smallest share of the visible pixels that a region's colour must have. It is not used for pictures
# in which every colour fills some 3 x 3 pixels.
_LEAST = 1e-4
# A label picture must have at least the share _MOST_NEAR of its visible pixels within _NEAR levels
# (of 255) of a painted colour. Drawn labels have at least 0.7; photographs and paintings at most
# 0.4.
_NEAR, _MOST_NEAR = 8, 0.6
# Largest difference between the channels of a pixel of a grey mask, in [0, 1]; JPEG compression
# causes less.
_GREY = 32 / 255


def read_regions(source: Source | Sequence[Source], name: str) -> Regions:
    """Return the regions of a label picture, or of masks if it is a list or a folder of them.

    A region of a label picture is all that is painted in one flat colour. Other colours, as on
    antialiased edges, take the nearest painted one. Pixels that are more than half transparent are
    in no region. Where masks sum to more than 1, they are divided by their sum.

    Args:
        source: a picture of at most 12 flat colours; an array or tensor (H, W) of bool or integers,
            one number per region, negative ones for no region; a folder of masks; a sequence of
            what `read_mask` takes; or (H, W) floats in [0, 1], which are one mask. A mask is called
            like its file without extension, or by its number from 1.
        name: what messages call it where it is no path (UserError: it is none of these).
    """
    if isinstance(source, Sequence) and not isinstance(source, str):
        return _from_masks(source, name)
    if isinstance(source, str | os.PathLike) and os.path.isdir(folder := expanded(source)):
        masks = in_folder(folder)
        if not masks:
            raise UserError(f"no picture in {folder}; put one grey mask per region there")
        return _from_masks(masks, folder)
    source = _plane_as_array(source)
    if isinstance(source, np.ndarray) and source.ndim == 2 and source.dtype.kind == "f":
        return _from_masks([source], name)
    if isinstance(source, np.ndarray) and source.ndim == 2 and source.dtype.kind in "bui":
        return _from_numbers(source, name)
    return _from_colors(source, name)


def read_mask(source: Source, name: str) -> Tensor:
    """Return a mask (1, 1, H, W) in [0, 1]: its grey values, times opacity if it has alpha.

    It is a grey picture, or an array or tensor (H, W) of bool, uint8 or floats in [0, 1]
    (UserError: it has colours, is black everywhere or cannot be read).
    """
    source = _plane_as_array(source)
    if isinstance(source, np.ndarray) and source.dtype == np.bool_:
        source = source.astype(np.float32)
    picture = as_picture(source, name)
    if (picture.rgb.amax(1) - picture.rgb.amin(1)).max() > _GREY:
        raise UserError(
            f"{picture.name} is a colour picture; a mask is grey, white where its region is "
            "(a label picture in flat colours is given alone, not in a list or folder)"
        )
    mask = picture.rgb.mean(1, keepdim=True)
    if picture.alpha is not None:
        mask = mask * picture.alpha
    if mask.max() < 0.5 / 255.0:
        raise UserError(f"{picture.name} is an empty mask; paint white where its region is")
    return mask


def _plane_as_array(source: Source) -> Source:
    """Return a tensor (H, W) as a NumPy array, and anything else as it is."""
    if isinstance(source, Tensor) and source.ndim == 2:
        return source.detach().cpu().numpy()
    return source


def _from_masks(sources: Sequence[Source], name: str) -> Regions:
    if not sources:
        raise UserError(f"{name} lists no mask; give one grey picture per region")
    masks: list[Tensor] = []
    names: list[str] = []
    for number, source in enumerate(sources, start=1):
        called = Path(source).stem if isinstance(source, str | os.PathLike) else str(number)
        masks.append(read_mask(source, f"{name}, mask {number}"))
        if masks[-1].shape != masks[0].shape:
            first, other = (f"{x.shape[3]} x {x.shape[2]}" for x in (masks[0], masks[-1]))
            raise UserError(
                f"{name}: mask {names[0]} has {first} pixels and {called} {other}; masks of one "
                "picture have one size"
            )
        if called in names:
            raise UserError(f"{name}: two masks are called {called}; rename one")
        names.append(called)
    layers = torch.cat(masks)
    return Regions(tuple(names), layers / layers.sum(0).clamp_min(1.0), source=name)


def _from_numbers(array: NDArray[Any], name: str) -> Regions:
    if array.size == 0:
        raise UserError(f"{name} is empty; give one number per pixel")
    numbers = np.unique(array[array >= 0])
    if not 0 < len(numbers) <= MOST:
        raise UserError(
            f"{name} has {len(numbers)} regions; number at least 1 and at most {MOST}, "
            "from 0 upwards"
        )
    layers = torch.from_numpy(np.stack([array == number for number in numbers])[:, None])
    return Regions(tuple(str(int(number)) for number in numbers), layers, source=name)


def _from_colors(source: Source, name: str) -> Regions:
    picture = as_picture(source, name)
    rgb = (picture.rgb[0] * 255.0).round().to(torch.int16)
    visible = torch.ones(picture.size, dtype=torch.bool)
    if picture.alpha is not None:
        visible = picture.alpha[0, 0] >= 0.5
    if not visible.any():
        raise UserError(f"{picture.name} is transparent everywhere; paint each region in a colour")
    colors = _painted_colors(rgb, visible)
    if not 0 < len(colors) <= MOST:
        raise _no_labels(picture.name, f"shows {len(colors)} flat colours")
    differences = (rgb - rgb.new_tensor(color)[:, None, None] for color in colors)
    difference, labels = torch.stack([x.abs().amax(0) for x in differences]).min(0)
    far = visible & (difference > SAME)
    near = float((difference[visible] <= _NEAR).float().mean())
    if near < _MOST_NEAR:
        between = int((1.0 - near) * visible.sum())
        raise _no_labels(picture.name, f"has {between:,} pixels between its flat colours")
    layers = torch.stack([(visible & (labels == n))[None] for n in range(len(colors))])
    return Regions(color_names(colors), layers, tuple(colors), int(far.sum()), picture.name)


def _painted_colors(rgb: Tensor, visible: Tensor) -> list[Color]:
    """Return the colours that fill some 3 x 3 pixels, the most frequent first.

    If every colour of the picture does so, all are returned. Otherwise a colour is left out if it
    is rare, or within SAME levels of a more frequent one.
    """
    codes = rgb[0] * 65536.0 + rgb[1] * 256.0 + rgb[2]  # whole numbers that float32 holds exactly
    flat = max_pool2d(codes[None], 3, 1, 1)[0] == -max_pool2d(-codes[None], 3, 1, 1)[0]
    values, counts = torch.unique(codes[visible], return_counts=True)
    painted = torch.isin(values, codes[visible & flat])
    clean = bool(painted.all())
    order = [n for n in counts.argsort(stable=True).flip(0).tolist() if painted[n]]
    colors: list[Color] = []
    for code, count in ((int(values[n]), int(counts[n])) for n in order):
        color = (code >> 16, code >> 8 & 255, code & 255)
        new = all(distance(color, other) > SAME for other in colors)
        if clean or (new and count >= _LEAST * int(visible.sum())):
            colors.append(color)
    return colors


def _no_labels(name: str, problem: str) -> UserError:
    return UserError(
        f"{name} {problem}; is it a photograph? Paint each region in one of at most {MOST} flat "
        "colours and save it as PNG"
    )
