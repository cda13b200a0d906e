"""Dtypes of sums, of gradients and of products, and checks of tensors.

Each message of a check names the required and the given property.
"""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

LOW_PRECISION = (torch.bfloat16, torch.float16)


def accumulate_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype for sums over features of `dtype`: float32 or wider."""
    return torch.float32 if dtype in LOW_PRECISION else dtype


def gradient_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return a dtype that can hold a gradient's coefficients, as small as 1e-12.

    bfloat16 has float32's range and is kept for its speed; float16's least number is 6e-8.
    """
    return torch.float32 if dtype == torch.float16 else dtype


def to_float64(x: Tensor) -> Tensor:
    """Return x in float64; from MPS, which has no float64, on the CPU."""
    return (x.cpu() if x.device.type == "mps" else x).double()


def without_autocast(x: Tensor) -> AbstractContextManager[object]:
    """Return a context in which products keep the dtype of x.

    Autocast casts only in `forward`; a hand-written `backward` would then receive mixed dtypes.
    """
    kind = x.device.type
    if torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind):
        return torch.autocast(kind, enabled=False)
    return nullcontext()


def check_floating(where: str, **tensors: Tensor | None) -> None:
    """Raise TypeError for a tensor that is not floating point, which has no derivative."""
    for name, tensor in tensors.items():
        if tensor is not None and not tensor.is_floating_point():
            raise TypeError(
                f"{where}: {name} has dtype {tensor.dtype}, but gradients exist only for "
                f"floating-point tensors; convert it first, for example with {name}.float()"
            )


def check_alike(where: str, *, dtype: bool = True, **tensors: Tensor | None) -> None:
    """Raise ValueError for different devices and, if `dtype`, TypeError for different dtypes.

    Also call `check_floating`.
    """
    check_floating(where, **tensors)
    given = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    if len({tensor.device for tensor in given.values()}) > 1:
        devices = ", ".join(f"{name} on {tensor.device}" for name, tensor in given.items())
        raise ValueError(f"{where}: {devices}; move all to one device")
    if dtype and len({tensor.dtype for tensor in given.values()}) > 1:
        dtypes = ", ".join(f"{name} of {tensor.dtype}" for name, tensor in given.items())
        raise TypeError(f"{where}: {dtypes}; convert all to one dtype")


def check_weights(where: str, features: Tensor, weights: Tensor) -> None:
    """Raise an error unless weights (H, W) are floating point, one per position of features."""
    check_alike(where, dtype=False, features=features, weights=weights)
    if weights.shape != features.shape[2:]:
        positions, shape = tuple(features.shape[2:]), tuple(weights.shape)
        raise ValueError(f"{where}: features have {positions} positions but weights have {shape}")


def check_features(where: str, features: Tensor) -> None:
    """Raise an error unless features are floating point, (1, C, H, W) with C, H, W at least 1."""
    check_floating(where, features=features)
    shape = tuple(features.shape)
    if len(shape) != 4 or shape[0] != 1 or 0 in shape:
        raise ValueError(
            f"{where}: features must have shape (1, C, H, W) with C, H, W at least 1, not {shape}"
        )


def check_target(where: str, features: Tensor, target: Tensor) -> None:
    """Raise an error unless features and target have the same shape, dtype and device."""
    check_features(where, features)
    check_alike(where, features=features, target=target)
    if features.shape != target.shape:
        shapes = f"features have shape {tuple(features.shape)} but target has {tuple(target.shape)}"
        raise ValueError(f"{where}: {shapes}")
