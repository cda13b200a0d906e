"""Random choices from a generator, and the grid that pictures are drawn on."""

import torch
from torch import Generator, Tensor


def uniform(g: Generator, low: float, high: float) -> float:
    """Return a number between `low` and `high`."""
    return low + (high - low) * float(torch.rand((), generator=g))


def chance(g: Generator, probability: float) -> bool:
    """Return True with the given probability."""
    return uniform(g, 0.0, 1.0) < probability


def pick(g: Generator, count: int) -> int:
    """Return one of 0 to count - 1."""
    return int(torch.randint(count, (), generator=g))


def grid(size: int) -> tuple[Tensor, Tensor]:
    """Return x (1, size) and y (size, 1), from -1 to 1."""
    line = torch.linspace(-1.0, 1.0, size)
    return line[None, :], line[:, None]
