"""Brush strokes along a flow, curves, branches and script."""

import math

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from styletransfer.pictures.procedural.fields import noise_field
from styletransfer.pictures.procedural.random_choice import chance, grid, pick, uniform

_TAU = 2.0 * math.pi


def brushed(canvas: Tensor, g: Generator) -> Tensor:
    """Repaint a canvas in short bristly strokes along a flow field."""
    size = canvas.shape[1]
    patch = max(6, int(size * uniform(g, 0.1, 0.22)))
    count = min(400, int(5.0 * (size / patch) ** 2))
    top, left = torch.randint(size, (2, count), generator=g)
    angle = noise_field(size, g, 2.5)[0][top, left] * uniform(g, 0.5, 3.0) + uniform(g, 0.0, _TAU)
    x, y = grid(patch)
    cos, sin = angle.cos()[:, None, None], angle.sin()[:, None, None]
    u, v = x * cos + y * sin, (y * cos - x * sin) * uniform(g, 2.0, 5.0)
    grain = torch.sin(v * uniform(g, 4.0, 12.0) + 9.0 * angle[:, None, None])
    cover = (4.0 * (1.0 - v.abs()).minimum(1.0 - u.abs() + 0.15 * grain)).clamp(0.0, 1.0)
    colours = canvas[:, top, left].T + uniform(g, 0.0, 0.12) * torch.randn(count, 1, generator=g)
    strokes = colours[:, :, None, None] + uniform(g, 0.0, 0.12) * grain[:, None]
    half = patch // 2
    padded = F.pad(canvas[None], (half, patch, half, patch), mode="replicate")[0]
    boxes = zip(top.tolist(), left.tolist(), strokes, cover[:, None], strict=True)
    for row, column, stroke, alpha in boxes:
        padded[:, row : row + patch, column : column + patch].lerp_(stroke, alpha)
    return padded[:, half : half + size, half : half + size].clamp(0.0, 1.0)


def _curls(g: Generator) -> Tensor:
    """Return (points, 2) on a few wandering curves, in [-1, 1] more or less."""
    count, steps = 1 + pick(g, 14), 400
    turning = torch.randn(count, 8, generator=g) * uniform(g, 1.0, 6.0)
    heading = F.interpolate(turning[None], size=steps, mode="linear")[0]
    heading = heading + torch.rand(count, 1, generator=g) * _TAU
    moves = torch.stack((heading.cos(), heading.sin()), dim=-1) * uniform(g, 0.002, 0.008)
    return (moves.cumsum(dim=1) + torch.rand(count, 1, 2, generator=g) * 2 - 1).flatten(0, 1)


def _branches(g: Generator) -> Tensor:
    """Return (points, 2) on a branching tree."""
    tips = torch.tensor([[uniform(g, -0.6, 0.6), 1.0]])
    heading = torch.tensor([-math.pi / 2])
    length, spread, points = uniform(g, 0.4, 0.7), uniform(g, 0.2, 0.8), []
    along = torch.linspace(0.0, 1.0, 60)[None, :, None]
    for _ in range(6):
        step = torch.stack((heading.cos(), heading.sin()), dim=-1) * length
        points.append((tips[:, None] + along * step[:, None]).flatten(0, 1))
        tips = (tips + step).repeat(2, 1)
        heading = torch.cat((heading - spread, heading + spread))
        heading = heading + 0.3 * torch.randn(len(heading), generator=g)
        length *= 0.75
    return torch.cat(points)


def _script(g: Generator) -> Tensor:
    """Return (points, 2) on rows of small strokes, like writing."""
    rows, signs, strokes = 2 + pick(g, 7), 6 + pick(g, 10), 3
    row, sign = torch.arange(rows)[:, None, None], torch.arange(signs)[None, :, None]
    corner = torch.rand(rows, signs, strokes + 1, 2, generator=g).mul_(3.0).round_().div_(3.0)
    x = (sign + 0.7 * corner[..., 0]) / signs * 1.8 - 0.9
    y = (row + 0.6 * corner[..., 1]) / rows * 1.8 - 0.9
    ends = torch.stack((x, y), dim=-1)
    along = torch.linspace(0.0, 1.0, 24)[:, None]
    return torch.lerp(ends[:, :, :-1, None], ends[:, :, 1:, None], along).reshape(-1, 2)


def drawn(canvas: Tensor, g: Generator, palette: Tensor) -> Tensor:
    """Return the canvas with lines on it: curves, a tree or writing, thin to thick."""
    size = canvas.shape[1]
    points = (_curls, _branches, _script)[pick(g, 3)](g)
    place = ((points + 1.0) * size).long()  # twice the resolution, for smooth edges
    inside = ((place >= 0) & (place < 2 * size)).all(dim=1)
    place = place[inside]
    ink = torch.zeros(1, 2 * size, 2 * size)
    ink[0, place[:, 1], place[:, 0]] = 1.0
    width = 1 + 2 * pick(g, 1 + pick(g, 2 + size // 32))
    ink = F.avg_pool2d(F.max_pool2d(ink, width, 1, width // 2), 2)
    colour = palette[pick(g, len(palette))] * (0.2 if chance(g, 0.5) else 1.0)
    return torch.lerp(canvas, colour[:, None, None], ink)
