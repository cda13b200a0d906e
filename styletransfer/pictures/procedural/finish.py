"""Light, focus, colour cast and grain."""

import math

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from styletransfer.pictures.procedural.fields import noise_field, random_mask
from styletransfer.pictures.procedural.random_choice import chance, grid, pick, uniform


def _blurred(canvas: Tensor, width: int) -> Tensor:
    """Return the canvas under two box blurs of odd width."""
    for _ in range(2):
        canvas = F.avg_pool2d(canvas, width, 1, width // 2, count_include_pad=False)
    return canvas


def finished(canvas: Tensor, g: Generator) -> Tensor:
    """Apply light and shadow, focus, saturation, contrast, exposure and grain."""
    size = canvas.shape[1]
    if chance(g, 0.45):  # a power keeps black black and white white
        light = noise_field(size, g, uniform(g, 1.8, 3.0))[0] * uniform(g, 0.1, 0.5)
        canvas = (canvas + 0.02).pow(light.exp())
    if chance(g, 0.2):
        x, y = grid(size)
        canvas = canvas * (1.0 - uniform(g, 0.1, 0.45) * (x * x + y * y))
    if chance(g, 0.3):
        focus = random_mask(size, g) if chance(g, 0.7) else torch.zeros(size, size)
        width = 3 + 2 * pick(g, 1 + size // 40)
        canvas = torch.lerp(_blurred(canvas, width), canvas, focus)
    if chance(g, 0.5):
        canvas = torch.lerp(canvas.mean(dim=0, keepdim=True), canvas, uniform(g, 0.1, 1.0))
    cast = 0.06 * torch.randn(3, 1, 1, generator=g) * chance(g, 0.5)
    middle, spread = canvas.mean(), float(canvas.std())
    exposure = uniform(g, -0.12, 0.12) + 0.35 * (0.48 - middle)
    # Photographs are rarely as faint as two close palette colours: bring those halfway to 0.2.
    contrast = uniform(g, 0.6, 1.5) * math.sqrt(max(1.0, min(16.0, 0.2 / max(spread, 1e-6))))
    canvas = (canvas - middle) * contrast + middle + exposure + cast
    if chance(g, 0.3):
        grain = torch.randn(3 if chance(g, 0.5) else 1, size, size, generator=g)
        canvas = canvas + uniform(g, 0.005, 0.07) * grain
    return canvas.clamp(0.0, 1.0)
