"""Films of a moment with known motion: a plain scene that is panned, zoomed or covered."""

from pathlib import Path
from types import ModuleType

import torch
from helpers import benchmark_script
from torch import Tensor


def scene(x: Tensor, y: Tensor) -> Tensor:
    """Return the colours (1, 3, H, W) of an endless smooth scene at positions (H, W) in pixels."""
    waves = [(0.11, 0.05, 0.3), (-0.07, 0.13, 1.1), (0.05, -0.09, 2.0)]
    colors = [
        0.5 + 0.2 * torch.sin(a * x + b * y + c) + 0.2 * torch.cos(b * x) for a, b, c in waves
    ]
    return torch.stack(colors)[None]


def grid(height: int = 24, width: int = 32) -> tuple[Tensor, Tensor]:
    """Return the columns and rows (H, W) of a frame."""
    y, x = torch.meshgrid(
        torch.arange(height, dtype=torch.float64),
        torch.arange(width, dtype=torch.float64),
        indexing="ij",
    )
    return x, y


def flow_of(u: Tensor, v: Tensor) -> Tensor:
    return torch.stack((u, v))[None]


def pan(time: int, speed: tuple[float, float] = (1.5, -0.5)) -> Tensor:
    """A camera that moves over the scene by `speed` pixels a frame."""
    x, y = grid()
    return scene(x + speed[0] * time, y + speed[1] * time)


def pan_flow(gap: int = 1, speed: tuple[float, float] = (1.5, -0.5)) -> Tensor:
    """The flow from a frame of `pan` to the one `gap` earlier."""
    x, _ = grid()
    return flow_of(torch.full_like(x, speed[0] * gap), torch.full_like(x, speed[1] * gap))


def zoom(time: int, rate: float = 1.01) -> Tensor:
    """A camera that comes nearer to the scene's point (0, 0)."""
    x, y = grid()
    return scene(x / rate**time, y / rate**time)


def zoom_flow(gap: int = 1, rate: float = 1.01) -> Tensor:
    """The flow from a frame of `zoom` to the one `gap` earlier."""
    x, y = grid()
    return flow_of(x / rate**gap - x, y / rate**gap - y)


def square_mask(time: int, speed: int = 2, side: int = 8) -> Tensor:
    """Where (H, W) the square of `square` is."""
    x, y = grid()
    left = 4 + speed * time
    return (x >= left) & (x < left + side) & (y >= 8) & (y < 8 + side)


def square(time: int, speed: int = 2) -> Tensor:
    """A patch of another scene that moves to the right over the scene, which stands."""
    x, y = grid()
    return torch.where(square_mask(time, speed), 1 - scene(x - speed * time, y), scene(x, y))


def square_flow(time: int, gap: int = 1, speed: int = 2) -> Tensor:
    """The flow from a frame of `square` to the one `gap` earlier."""
    u = torch.where(square_mask(time, speed), -float(speed * gap), 0.0).double()
    return flow_of(u, torch.zeros_like(u))


def clip_maker() -> ModuleType:
    """Return benchmarks/clip.py, which needs PyAV to write a film."""
    return benchmark_script("clip")


def tiny_film(folder: Path, count: int = 3) -> Path:
    """Write a film of a few frames of 32 x 24 pixels, and return its file."""
    maker, path = clip_maker(), folder / "clip.mp4"
    maker.write(path, maker.clip(count, (24, 32)))
    return path
