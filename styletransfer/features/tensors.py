"""Dtypes, principal axes and checks of shapes for computations on features.

The message of a check names the required shape and the given shape.
"""

import torch
from torch import Tensor


def accumulate_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype for sums over features of `dtype`: float32 for bfloat16, else `dtype`."""
    return torch.float32 if dtype == torch.bfloat16 else dtype


def to_float64(x: Tensor) -> Tensor:
    """Return x in float64. MPS has no float64, so a tensor on MPS is moved to the CPU."""
    return (x.cpu() if x.device.type == "mps" else x).double()


def principal_axes(second: Tensor, count: int) -> Tensor:
    """Return the `count` principal axes, (C, count), of second moments (C, C); all if C is less."""
    axes: Tensor = torch.linalg.eigh(second.cpu())[1][:, -count:]  # some devices lack eigh
    return axes.to(second)


def check_features(where: str, features: Tensor) -> None:
    """Raise ValueError unless features have the shape (1, C, H, W) with C, H, W at least 1."""
    shape = tuple(features.shape)
    if len(shape) != 4 or shape[0] != 1 or 0 in shape:
        raise ValueError(
            f"{where}: features must have shape (1, C, H, W) with C, H, W at least 1, not {shape}"
        )


def check_target(where: str, features: Tensor, target: Tensor) -> None:
    """Raise ValueError unless features and target have the same shape, (1, C, H, W)."""
    check_features(where, features)
    if features.shape != target.shape:
        shapes = f"features have shape {tuple(features.shape)} but target has {tuple(target.shape)}"
        raise ValueError(f"{where}: {shapes}")
