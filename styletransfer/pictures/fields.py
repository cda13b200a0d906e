"""Random palettes, and the grey fields that they colour: noise, waves, motifs, marble.

A *field* is a (size, size) float32 tensor in [0, 1]; a CPU generator `g` makes every choice.
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

TAU = 2.0 * math.pi


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


def random_palette(g: Generator) -> Tensor:
    """Return (3 to 6, 3) colours: vivid like a poster, earthy like a photograph, or near grey."""
    count = 3 + pick(g, 4)
    kind = uniform(g, 0.0, 1.0)
    hue = torch.rand(count, 1, generator=g)
    saturation = torch.rand(count, 1, generator=g)
    value = torch.rand(count, 1, generator=g)
    if kind < 0.3:  # vivid
        saturation = 0.5 + 0.5 * saturation
        value = 0.35 + 0.65 * value
    elif kind < 0.55:  # earth, skin and foliage, with at most one sky blue
        hue = 0.02 + 0.28 * hue * hue
        hue[0] = 0.58
        saturation = 0.1 + 0.5 * saturation
    elif kind < 0.7:  # warm against cool, subdued
        hue = hue[:1] + 0.5 * (hue > 0.5) + 0.15 * (hue - 0.5)
        saturation = 0.05 + 0.5 * saturation
    elif kind < 0.85:  # one hue and its surroundings
        hue = hue[:1] + 0.2 * (hue - 0.5)
        saturation = 0.6 * saturation
    else:
        saturation = 0.15 * saturation
    if chance(g, 0.25):  # paper white or night black as the ground colour
        value[0] = 0.97 if chance(g, 0.5) else 0.04
        saturation[0] *= 0.2
    wheel = (hue + torch.tensor([1.0, 2 / 3, 1 / 3])) % 1.0
    pure = ((wheel * 6.0 - 3.0).abs() - 1.0).clamp(0.0, 1.0)
    return value * (1.0 - saturation + saturation * pure)


def painted(field: Tensor, g: Generator, palette: Tensor) -> Tensor:
    """Colour a field along the palette, smoothly or (sometimes) in flat steps."""
    place = field.clamp(0.0, 1.0) * (len(palette) - 1)
    if chance(g, 0.2):
        return palette.T[:, place.round().long()]
    lower = place.long().clamp(max=len(palette) - 2)
    return torch.lerp(palette.T[:, lower], palette.T[:, lower + 1], (place - lower)[None])


def noise_field(size: int, g: Generator, slope: float, channels: int = 1) -> Tensor:
    """Return (channels, size, size) noise of amplitude 1/f^slope, zero mean, unit deviation."""
    fy = torch.fft.fftfreq(size)[:, None]
    fx = torch.fft.rfftfreq(size)[None, :]
    gain = (fx * fx + fy * fy).clamp(min=0.25 / size**2).pow(-slope / 2)
    gain[0, 0] = 0.0
    white = torch.randn(2, channels, size, size // 2 + 1, generator=g)
    noise: Tensor = torch.fft.irfft2(torch.complex(white[0], white[1]) * gain, s=(size, size))
    return noise / noise.std(dim=(1, 2), keepdim=True).clamp(min=1e-6)


def _cloud(size: int, g: Generator) -> Tensor:
    """Return a field of 1/f noise, grainy to smooth."""
    noise = noise_field(size, g, uniform(g, 0.5, 2.5))[0]
    return (noise * uniform(g, 0.6, 2.5)).sigmoid()


def random_mask(size: int, g: Generator) -> Tensor:
    """Return a field of smooth regions with edges from soft to sharp."""
    noise = noise_field(size, g, uniform(g, 1.8, 3.0))[0]
    sharpness = math.exp2(uniform(g, 0.0, 6.0))
    return ((noise + uniform(g, -0.6, 0.6)) * sharpness).sigmoid()


def _surface(size: int, g: Generator) -> tuple[Tensor, Tensor]:
    """Return (size, size) pattern coordinates: turned, seen in perspective, or warped."""
    x, y = grid(size)
    angle = uniform(g, 0.0, TAU)
    u = x * math.cos(angle) + y * math.sin(angle)
    v = y * math.cos(angle) - x * math.sin(angle)
    kind = uniform(g, 0.0, 1.0)
    if kind < 0.25:
        depth = 1.0 / (v + uniform(g, 1.6, 3.0))
        u, v = 2.0 * u * depth, 4.0 * depth
    elif kind < 0.6:
        warp = noise_field(size, g, uniform(g, 1.8, 3.0), 2) * uniform(g, 0.02, 0.25)
        u, v = u + warp[0], v + warp[1]
    elif kind < 0.75:
        radius = (u * u + v * v).sqrt()
        u, v = radius, torch.atan2(v, u) * (1 + pick(g, 4)) / math.pi
    return u, v


def _waves(size: int, g: Generator) -> Tensor:
    """Return a field of interfering gratings and ripples."""
    u, v = _surface(size, g)
    total = torch.zeros(size, size)
    for _ in range(1 + pick(g, 3)):
        pitch = math.exp2(uniform(g, 1.0, 5.5)) * min(1.0, size / 96)
        if chance(g, 0.35):
            a, b = uniform(g, -1.0, 1.0), uniform(g, -1.0, 1.0)
            path = ((u - a).square() + (v - b).square()).sqrt()
        else:
            angle = uniform(g, 0.0, TAU)
            path = u * math.cos(angle) + v * math.sin(angle)
        total += torch.sin(pitch * path + uniform(g, 0.0, TAU))
    return (total * math.exp2(uniform(g, 0.0, 4.0))).sigmoid()


def _motif(size: int, g: Generator) -> Tensor:
    """Return a field of a regular pattern: checks, dots, hatching, bricks or rings."""
    u, v = _surface(size, g)
    pitch = uniform(g, 2.0, 9.0) * min(1.0, size / 64)
    u, v = u * pitch, v * pitch * uniform(g, 0.6, 1.6)
    hard = uniform(g, 4.0, 20.0)
    kind = pick(g, 5)
    if kind == 0:
        return (hard * torch.sin(u * math.pi) * torch.sin(v * math.pi)).sigmoid()
    if kind == 1:
        return (hard * (torch.sin(u * 6.0) + uniform(g, -0.8, 0.8))).sigmoid()
    row = v.floor()
    p = ((u + 0.5 * (row % 2)) % 1.0 - 0.5).abs()
    q = (v % 1.0 - 0.5).abs()
    if kind == 2:
        joint = (hard * 2 * (0.42 - torch.maximum(p, q))).sigmoid()
        tone = (torch.sin(row * 12.99 + (u + 0.5 * (row % 2)).floor() * 78.23) * 43.7) % 1.0
        return joint * (0.4 + 0.6 * tone)
    radius = (p * p + q * q).sqrt()
    if kind == 3:
        return (hard * 2 * (uniform(g, 0.15, 0.45) - radius)).sigmoid()
    return 0.5 + 0.5 * torch.cos(radius * uniform(g, 8.0, 30.0))


def _marble(size: int, g: Generator) -> Tensor:
    """Return a field of noise warped by noise, often ridged into veins."""
    slope = uniform(g, 1.4, 2.4)
    noise = noise_field(size, g, slope, 3)
    x, y = grid(size)
    reach = uniform(g, 0.1, 0.5)
    place = torch.stack((x + reach * noise[0], y + reach * noise[1]), dim=-1)[None]
    warped = F.grid_sample(noise[None, 2:], place, padding_mode="reflection", align_corners=True)
    field = warped[0, 0]
    if chance(g, 0.6):
        return 0.5 + 0.5 * torch.sin(field * uniform(g, 2.0, 9.0))
    return (1.0 - field.abs()).clamp(0.0, 1.0) if chance(g, 0.5) else field.sigmoid()


FIELDS: tuple[Callable[[int, Generator], Tensor], ...] = (_cloud, _waves, _motif, _marble)
