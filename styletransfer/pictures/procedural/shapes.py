"""Dead leaves: shapes that hide each other, with sizes as in nature."""

import math

import torch
from torch import Generator, Tensor

from styletransfer.pictures.procedural.fields import FIELDS
from styletransfer.pictures.procedural.random_choice import chance, pick, uniform

_TAU = 2.0 * math.pi


def _outline(kind: int, u: Tensor, v: Tensor, g: Generator) -> Tensor:
    """Return how far out (u, v) lies in a shape: 0 at its centre, 1 on its edge."""
    if kind == 0:
        return torch.maximum(u.abs(), v.abs())
    if kind == 1:
        sides = 3 + pick(g, 4)
        turn = torch.arange(sides)[:, None, None] * (_TAU / sides)
        return (u * turn.cos() + v * turn.sin()).amax(dim=0) * 1.3
    radius = (u * u + v * v).sqrt()
    if kind > 3:
        return radius
    angle = torch.atan2(v, u)
    bump = torch.sin(angle * (2 + pick(g, 6)) + uniform(g, 0.0, _TAU)) * uniform(g, 0.05, 0.35)
    return radius / (0.8 + bump + 0.1 * torch.sin(angle * 2))


def _filled(q: Tensor, u: Tensor, texture: Tensor, g: Generator, palette: Tensor) -> Tensor:
    """Return a (3, h, w) fill for a shape: gradient, rings or texture, then shade and edge."""
    ends = palette[torch.randint(len(palette), (2,), generator=g)]
    style = uniform(g, 0.0, 1.0)
    if style < 0.3:
        field = torch.full_like(q, uniform(g, 0.0, 0.3))
    elif style < 0.5:
        field = (0.5 + 0.5 * u).clamp(0.0, 1.0)
    elif style < 0.62:  # eyes, wheels, flowers
        field = (6.0 * torch.cos(q * uniform(g, 4.0, 20.0))).sigmoid()
    else:
        field = texture
    colour = torch.lerp(ends[0, :, None, None], ends[1, :, None, None], field[None])
    finish = uniform(g, 0.0, 1.0)
    if finish < 0.3:  # round like a ball
        colour = colour * (1.15 - uniform(g, 0.3, 0.9) * q.square() - 0.25 * u)
    elif finish < 0.45:  # glossy
        colour = colour + (-((u - 0.3).square() + (q - 0.4).square()) * 25.0).exp()
    elif finish < 0.65:  # outlined
        colour = colour * ((1.0 - q) * 12.0).clamp(0.0, 1.0)
    return colour


def leaves(canvas: Tensor, g: Generator, palette: Tensor, count: int) -> Tensor:
    """Return the canvas under shapes that hide one another, their sizes by a power law."""
    size = canvas.shape[1]
    canvas = canvas.clone()
    textures = [FIELDS[pick(g, len(FIELDS))](size, g) for _ in range(2)]
    only = pick(g, 6) if chance(g, 0.35) else None
    soft_scene = uniform(g, 0.0, 0.5)
    smallest = uniform(g, 0.02, 0.12)
    draws = torch.rand(count, 7, generator=g).tolist()
    for a, b, reach, turn, squeeze, blur, kind in draws:
        # Inverse of the distribution of a density r^-3, cut to the picture.
        radius = max(1.0, size * min(0.45, smallest / math.sqrt(max(reach, 1e-3))))
        cx, cy, aspect = a * size, b * size, 0.3 + 0.7 * squeeze
        left, right = int(max(0, cx - radius * 1.5)), int(min(size, cx + radius * 1.5 + 1))
        top, bottom = int(max(0, cy - radius * 1.5)), int(min(size, cy + radius * 1.5 + 1))
        x = (torch.arange(left, right) - cx)[None, :] / radius
        y = (torch.arange(top, bottom) - cy)[:, None] / radius
        cos, sin = math.cos(turn * _TAU), math.sin(turn * _TAU)
        u, v = x * cos + y * sin, (y * cos - x * sin) / aspect
        q = _outline(int(kind * 6) if only is None else only, u, v, g)
        box = (slice(top, bottom), slice(left, right))
        fill = _filled(q, u, textures[pick(g, 2)][box], g, palette)
        edge = radius * aspect / (1.0 + (radius * blur if blur < soft_scene else 0.0))
        cover = ((1.0 - q) * edge + 0.5).clamp(0.0, 1.0)
        canvas[:, *box].lerp_(fill, cover[None])
    return canvas.clamp_(0.0, 1.0)
