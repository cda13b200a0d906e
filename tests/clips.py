"""Clips of a moment with known motion: a plain scene that is panned or zoomed."""

from pathlib import Path

import torch
from helpers import benchmark_script
from torch import Tensor

PAN = (1.5, -0.5)
"""In pixels a frame, to the right and down."""
ZOOM = 1.01


def scene(x: Tensor, y: Tensor) -> Tensor:
    """Return the colours (1, 3, H, W) of an endless smooth scene at positions (H, W) in pixels."""
    waves = [(0.11, 0.05, 0.3), (-0.07, 0.13, 1.1), (0.05, -0.09, 2.0)]
    colors = [
        0.5 + 0.2 * torch.sin(a * x + b * y + c) + 0.2 * torch.cos(b * x) for a, b, c in waves
    ]
    return torch.stack(colors)[None]


def grid(height: int = 24, width: int = 32) -> tuple[Tensor, Tensor]:
    """Return the columns and rows (H, W) of a frame."""
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    return x.double(), y.double()


def pan(time: int) -> Tensor:
    """A camera that moves over the scene."""
    x, y = grid()
    return scene(x + PAN[0] * time, y + PAN[1] * time)


def pan_flow() -> Tensor:
    """The flow from a frame of `pan` to the one before."""
    return torch.tensor(PAN).double().view(1, 2, 1, 1).expand(1, 2, 24, 32)


def zoom(time: int) -> Tensor:
    """A camera that comes nearer to the scene's point (0, 0)."""
    x, y = grid()
    return scene(x / ZOOM**time, y / ZOOM**time)


def zoom_flow() -> Tensor:
    """The flow from a frame of `zoom` to the one before."""
    return torch.stack(grid())[None] * (1 / ZOOM - 1)


def tiny_film(folder: Path, count: int = 3) -> Path:
    """Write a film of a few frames of 32 x 24 pixels, and return its file; needs PyAV."""
    maker, path = benchmark_script("clip"), folder / "clip.mp4"
    maker.write(path, maker.clip(count, (24, 32)))
    return path
