"""Whole pictures of one kind: spectra, gradients, cells, landscapes, tiles."""

import math

import torch
from torch import Generator, Tensor

from styletransfer.pictures.procedural.fields import FIELDS, noise_field, painted
from styletransfer.pictures.procedural.random_choice import chance, grid, pick, uniform
from styletransfer.pictures.procedural.shapes import leaves
from styletransfer.pictures.procedural.strokes import drawn


def base_canvas(size: int, g: Generator, palette: Tensor) -> Tensor:
    """Return a canvas of one family."""
    kind = uniform(g, 0.0, 1.0)
    if kind < 0.26:
        field = FIELDS[pick(g, len(FIELDS))](size, g)
        return painted(field, g, palette)
    if kind < 0.32:
        return _spectrum(size, g, palette)
    if kind < 0.42:
        return _cells(size, g, palette)
    if kind < 0.57:
        return _landscape(size, g, palette)
    if kind < 0.65 and size >= 32:
        return _tiles(size, g, palette)
    canvas = _light(size, g, palette)
    if kind < 0.7:
        return drawn(canvas, g, palette)
    return leaves(canvas, g, palette, int(uniform(g, 15, 70)))


def _spectrum(size: int, g: Generator, palette: Tensor) -> Tensor:
    """Return coloured noise whose channels agree more or less, as in photographs."""
    noise = noise_field(size, g, uniform(g, 0.5, 2.2), 4)
    chroma = uniform(g, 0.0, 0.6)
    tint = palette[0, :, None, None]
    return (tint + uniform(g, 0.08, 0.3) * (noise[:1] + chroma * noise[1:])).clamp(0.0, 1.0)


def _light(size: int, g: Generator, palette: Tensor) -> Tensor:
    """Return a smooth gradient, straight or round."""
    x, y = grid(size)
    a, b = uniform(g, -1.0, 1.0), uniform(g, -1.0, 1.0)
    if chance(g, 0.5):
        field = 0.5 + 0.5 * (a * x + b * y)
    else:
        field = ((x - a).square() + (y - b).square()).sqrt() * uniform(g, 0.3, 0.8)
    start = pick(g, len(palette) - 1)
    first, last = palette[start : start + 2, :, None, None]
    return torch.lerp(first, last, field.clamp(0.0, 1.0)[None])


def _cells(size: int, g: Generator, palette: Tensor) -> Tensor:
    """Return Voronoi cells, flat or shaded, with borders from none to wide."""
    count = int(math.exp2(uniform(g, 2.5, 6.3)))
    x, y = grid(size)
    warp = noise_field(size, g, 2.0, 2) * uniform(g, 0.0, 0.06)
    sites = torch.rand(count, 2, generator=g) * 2.4 - 1.2
    stretch = uniform(g, 0.5, 1.5)
    dx = (x + warp[0]) - sites[:, 0, None, None]
    dy = ((y + warp[1]) - sites[:, 1, None, None]) * stretch
    distance = dx.square_().add_(dy.square_())
    nearest, owner = distance.min(dim=0)
    second = distance.scatter_(0, owner[None], 9.0).amin(dim=0)
    first, second = nearest.sqrt(), second.sqrt()
    tones = palette[torch.randint(len(palette), (count,), generator=g)]
    tones = tones * (0.7 + 0.5 * torch.rand(count, 1, generator=g))
    canvas = tones.T[:, owner]
    if chance(g, 0.5):
        canvas = canvas * (1.3 - uniform(g, 0.5, 1.2) * first * math.sqrt(count))
    if chance(g, 0.6):
        border = ((second - first) / uniform(g, 0.01, 0.08)).clamp(0.0, 1.0)
        ink = 0.05 if chance(g, 0.6) else 0.95
        canvas = ink + (canvas - ink) * border
    return canvas.clamp(0.0, 1.0)


def _landscape(size: int, g: Generator, palette: Tensor) -> Tensor:
    """Return ridges in front of one another under a sky, hazier with distance."""
    canvas = _light(size, g, palette)
    _, y = grid(size)
    count = 1 + pick(g, 5)
    haze = uniform(g, 0.0, 0.8)
    relief = noise_field(size, g, uniform(g, 1.0, 2.0))[0]
    ground = noise_field(size, g, uniform(g, 0.7, 1.8))[0] * uniform(g, 0.0, 0.2)
    for ridge in range(count):
        level = -0.5 + 1.4 * (ridge + uniform(g, 0.0, 0.7)) / count
        line = level + relief[pick(g, size)] * uniform(g, 0.02, 0.2)
        if chance(g, 0.3):  # roofs and walls instead of hills
            step = max(2, size // (4 + pick(g, 12)))
            line = line[::step].repeat_interleave(step)[:size]
        colour = palette[pick(g, len(palette))] * uniform(g, 0.4, 1.0)
        colour = torch.lerp(colour, palette[0], haze * (1.0 - (ridge + 1) / count))
        near = ((y - line) * size / 2).clamp(0.0, 1.0)
        canvas = torch.lerp(canvas, colour[:, None, None] + ground, near[None])
    return canvas.clamp(0.0, 1.0)


def _tiles(size: int, g: Generator, palette: Tensor) -> Tensor:
    """Return a small picture repeated as wallpaper, plain or mirrored."""
    side = max(8, size // (2 + pick(g, 4)))
    tile = leaves(_light(side, g, palette), g, palette, 4 + pick(g, 12))
    if chance(g, 0.6):
        tile = torch.cat((tile, tile.flip(2)), dim=2)
        tile = torch.cat((tile, tile.flip(1)), dim=1)
    copies = -(-size // tile.shape[1])
    return tile.repeat(1, copies, copies)[:, :size, :size]
