"""In which dtype to add, to multiply, and to stay."""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

LOW_PRECISION = (torch.bfloat16, torch.float16)


def accumulate_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype in which sums over features of `dtype` are kept: float32 or wider."""
    return torch.float32 if dtype in LOW_PRECISION else dtype


def gradient_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype in which a gradient's coefficients, as small as 1e-12, can be held.

    bfloat16 has float32's exponents and keeps its fast products; float16 ends at 6e-8.
    """
    return torch.float32 if dtype == torch.float16 else dtype


def to_float64(x: Tensor) -> Tensor:
    """Return x in float64: on the CPU where its device, MPS, has none."""
    return (x.cpu() if x.device.type == "mps" else x).double()


def without_autocast(x: Tensor) -> AbstractContextManager[object]:
    """Return a context in which products keep the dtype of x.

    Autocast casts inside `forward` only, so a `backward` written for one dtype would meet another.
    """
    kind = x.device.type
    if torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind):
        return torch.autocast(kind, enabled=False)
    return nullcontext()
