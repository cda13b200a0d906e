"""Dtypes, principal axes and checks of shapes for computations on features.

The message of a check names the required shape and the given shape.
"""

import torch
from torch import Tensor


def accumulate_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype in which features are summed: float32 for bfloat16, otherwise `dtype`."""
    return torch.float32 if dtype == torch.bfloat16 else dtype


def to_float64(x: Tensor) -> Tensor:
    """Return x in float64. MPS has no float64, so a tensor on MPS is moved to the CPU."""
    return (x.cpu() if x.device.type == "mps" else x).double()


def principal_axes(second: Tensor, count: int) -> Tensor:
    """Return the eigenvectors (C, count) of `second` (C, C) with the `count` largest eigenvalues.

    `second` is a matrix of second moments. If `count` is above C, all C eigenvectors are returned.
    """
    axes: Tensor = torch.linalg.eigh(second.cpu())[1][:, -count:]  # some devices have no eigh
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
