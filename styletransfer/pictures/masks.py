"""Grey masks: one picture per region, white where the region is, with soft edges."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.pictures.convert import Source, as_picture, plane_as_array
from styletransfer.pictures.folders import in_folder
from styletransfer.pictures.regions import Regions

# The largest difference between a grey pixel's channels: more is a colour, and not JPEG's doing.
_GREY = 32 / 255


def read_mask(source: Source, name: str) -> Tensor:
    """Return a mask (1, 1, H, W) in [0, 1]: its grey values, times opacity if it has alpha.

    Args:
        source: a grey picture, or an array or tensor (H, W) of bool, uint8 or floats in [0, 1].
        name: what messages call it, if it is no path.

    Raises:
        UserError: a colour picture, a mask that is black everywhere, or one that cannot be read.
    """
    source = plane_as_array(source)
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


def read_masks(sources: Sequence[Source], name: str) -> Regions:
    """Return one region per mask; where several sum to more than 1, they are divided by their sum.

    Args:
        sources: at least one, all of one size, as `read_mask` takes them. A region is called like
            its file without extension, or by its number from 1.
        name: what messages call them all.

    Raises:
        UserError: no mask, masks of several sizes or one name, or what `read_mask` refuses.
    """
    if not sources:
        raise UserError(f"{name} lists no mask; give one grey picture per region")
    masks: list[Tensor] = []
    names: list[str] = []
    for number, source in enumerate(sources, start=1):
        names.append(Path(source).stem if isinstance(source, str | os.PathLike) else str(number))
        masks.append(read_mask(source, f"{name}, mask {number}"))
        if masks[-1].shape != masks[0].shape:
            first, other = (f"{x.shape[3]} x {x.shape[2]}" for x in (masks[0], masks[-1]))
            raise UserError(
                f"{name}: mask {names[0]} has {first} pixels and {names[-1]} {other}; masks of one "
                "picture have one size"
            )
    if len(set(names)) < len(names):
        raise UserError(f"{name}: two masks are called {_twice(names)}; rename one")
    layers = torch.stack([mask[0] for mask in masks])
    return Regions(names=tuple(names), layers=layers / layers.sum(0).clamp_min(1.0), source=name)


def masks_in(folder: str | os.PathLike[str]) -> list[str]:
    """Return the pictures of a folder in the order of their names.

    Raises:
        UserError: there is none.
    """
    found = in_folder(folder)
    if not found:
        raise UserError(f"no picture in {folder}; put one grey mask per region there")
    return found


def _twice(names: list[str]) -> str:
    return next(name for name in names if names.count(name) > 1)
