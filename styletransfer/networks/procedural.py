"""Random procedural pictures, for training networks without a data set.

A picture consists of a few layers (occluding shapes, waves, noise, landscapes) in a
random palette, and is finished with light, focus and grain. In this module a field is a
(size, size) float32 tensor in [0, 1], a canvas is a (3, size, size) sRGB tensor in [0, 1], and `g`
is the CPU generator that makes every random choice.
"""

import math

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

TAU = 2.0 * math.pi


def picture(size: int, generator: Generator) -> Tensor:
    """Return a random picture (3, size, size), float32 sRGB in [0, 1], from a CPU generator."""
    palette = random_palette(generator)
    canvas = _base_canvas(size, generator, palette)
    if chance(generator, 0.3):
        other = palette if chance(generator, 0.5) else random_palette(generator)
        second = _base_canvas(size, generator, other)
        canvas = torch.lerp(canvas, second, random_mask(size, generator))
    if chance(generator, 0.3):
        canvas = _leaves(canvas, generator, palette, int(uniform(generator, 2, 25)))
    return _finished(canvas, generator)


def uniform(g: Generator, low: float, high: float) -> float:
    """Return a random number between `low` and `high`."""
    return low + (high - low) * float(torch.rand((), generator=g))


def chance(g: Generator, probability: float) -> bool:
    """Return True with the given probability."""
    return uniform(g, 0.0, 1.0) < probability


def pick(g: Generator, count: int) -> int:
    """Return a random integer from 0 to count - 1."""
    return int(torch.randint(count, (), generator=g))


def grid(size: int) -> tuple[Tensor, Tensor]:
    """Return coordinates x (1, size) and y (size, 1), from -1 to 1."""
    line = torch.linspace(-1.0, 1.0, size)
    return line[None, :], line[:, None]


def random_palette(g: Generator) -> Tensor:
    """Return 3 to 6 colours, (n, 3) sRGB: vivid, earthy, subdued, of one hue, or nearly grey."""
    count = 3 + pick(g, 4)
    kind = uniform(g, 0.0, 1.0)
    hue, saturation, value = torch.rand(3, count, 1, generator=g).unbind()
    if kind < 0.3:  # vivid
        saturation = 0.5 + 0.5 * saturation
        value = 0.35 + 0.65 * value
    elif kind < 0.55:  # the hues of earth, skin and foliage, and one sky blue
        hue = 0.02 + 0.28 * hue * hue
        hue[0] = 0.58
        saturation = 0.1 + 0.5 * saturation
    elif kind < 0.7:  # two opposite hues, subdued
        hue = hue[:1] + 0.5 * (hue > 0.5) + 0.15 * (hue - 0.5)
        saturation = 0.05 + 0.5 * saturation
    elif kind < 0.85:  # one hue and its neighbours
        hue = hue[:1] + 0.2 * (hue - 0.5)
        saturation = 0.6 * saturation
    else:
        saturation = 0.15 * saturation
    if chance(g, 0.25):  # the first colour becomes nearly white or nearly black
        value[0] = 0.97 if chance(g, 0.5) else 0.04
        saturation[0] *= 0.2
    wheel = (hue + torch.tensor([1.0, 2 / 3, 1 / 3])) % 1.0
    pure = ((wheel * 6.0 - 3.0).abs() - 1.0).clamp(0.0, 1.0)
    return value * (1.0 - saturation + saturation * pure)


def painted(field: Tensor, g: Generator, palette: Tensor) -> Tensor:
    """Return a canvas: a field in the palette's colours, smooth or, one time in five, in steps."""
    position = field.clamp(0.0, 1.0) * (len(palette) - 1)
    if chance(g, 0.2):
        return palette.T[:, position.round().long()]
    lower = position.long().clamp(max=len(palette) - 2)
    return torch.lerp(palette.T[:, lower], palette.T[:, lower + 1], (position - lower)[None])


def noise_field(size: int, g: Generator, slope: float) -> Tensor:
    """Return (size, size) noise of amplitude 1/f^slope, with zero mean and unit deviation."""
    fy = torch.fft.fftfreq(size)[:, None]
    fx = torch.fft.rfftfreq(size)[None, :]
    gain = (fx * fx + fy * fy).clamp(min=0.25 / size**2).pow(-slope / 2)
    gain[0, 0] = 0.0
    real, imaginary = torch.randn(2, size, size // 2 + 1, generator=g)
    noise: Tensor = torch.fft.irfft2(torch.complex(real, imaginary) * gain, s=(size, size))
    return noise / noise.std().clamp(min=1e-6)


def _cloud(size: int, g: Generator) -> Tensor:
    """Return a field of 1/f noise, from grainy to smooth."""
    noise = noise_field(size, g, uniform(g, 0.5, 2.5))
    return (noise * uniform(g, 0.6, 2.5)).sigmoid()


def random_mask(size: int, g: Generator) -> Tensor:
    """Return a field of smooth regions, whose edges are soft to sharp."""
    noise = noise_field(size, g, uniform(g, 1.8, 3.0))
    sharpness = math.exp2(uniform(g, 0.0, 6.0))
    return ((noise + uniform(g, -0.6, 0.6)) * sharpness).sigmoid()


def _waves(size: int, g: Generator) -> Tensor:
    """Return a field of one to three superposed plane or circular waves."""
    u, v = grid(size)
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


def _texture(size: int, g: Generator) -> Tensor:
    """Return a field of noise or of waves."""
    return (_cloud, _waves)[pick(g, 2)](size, g)


def _base_canvas(size: int, g: Generator, palette: Tensor) -> Tensor:
    kind = uniform(g, 0.0, 1.0)
    if kind < 0.32:
        return painted(_texture(size, g), g, palette)
    if kind < 0.52:
        return _landscape(size, g, palette)
    return _leaves(_light(size, g, palette), g, palette, int(uniform(g, 15, 70)))


def _light(size: int, g: Generator, palette: Tensor) -> Tensor:
    """Return a canvas with a smooth gradient, linear or radial."""
    x, y = grid(size)
    a, b = uniform(g, -1.0, 1.0), uniform(g, -1.0, 1.0)
    if chance(g, 0.5):
        field = 0.5 + 0.5 * (a * x + b * y)
    else:
        field = ((x - a).square() + (y - b).square()).sqrt() * uniform(g, 0.3, 0.8)
    start = pick(g, len(palette) - 1)
    first, last = palette[start : start + 2, :, None, None]
    return torch.lerp(first, last, field.clamp(0.0, 1.0)[None])


def _landscape(size: int, g: Generator, palette: Tensor) -> Tensor:
    """Return a canvas of ridges that overlap under a sky; distant ridges are hazier."""
    canvas = _light(size, g, palette)
    _, y = grid(size)
    count = 1 + pick(g, 5)
    haze = uniform(g, 0.0, 0.8)
    relief = noise_field(size, g, uniform(g, 1.0, 2.0))
    ground = noise_field(size, g, uniform(g, 0.7, 1.8)) * uniform(g, 0.0, 0.2)
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


def _outline(kind: int, u: Tensor, v: Tensor, g: Generator) -> Tensor:
    """Return the relative distance of (u, v) from a shape's centre: 1 on the edge."""
    if kind == 0:
        return torch.maximum(u.abs(), v.abs())
    if kind == 1:
        sides = 3 + pick(g, 4)
        turn = torch.arange(sides)[:, None, None] * (TAU / sides)
        return (u * turn.cos() + v * turn.sin()).amax(dim=0) * 1.3
    radius = (u * u + v * v).sqrt()
    if kind > 3:
        return radius
    angle = torch.atan2(v, u)
    bump = torch.sin(angle * (2 + pick(g, 6)) + uniform(g, 0.0, TAU)) * uniform(g, 0.05, 0.35)
    return radius / (0.8 + bump + 0.1 * torch.sin(angle * 2))


def _filled(q: Tensor, u: Tensor, texture: Tensor, g: Generator, palette: Tensor) -> Tensor:
    """Return (3, h, w), a shape filled flat, or with a gradient, rings or texture, and shaded."""
    ends = palette[torch.randint(len(palette), (2,), generator=g)]
    style = uniform(g, 0.0, 1.0)
    if style < 0.3:
        field = torch.full_like(q, uniform(g, 0.0, 0.3))
    elif style < 0.5:
        field = (0.5 + 0.5 * u).clamp(0.0, 1.0)
    elif style < 0.62:  # rings, as in eyes, wheels and flowers
        field = (6.0 * torch.cos(q * uniform(g, 4.0, 20.0))).sigmoid()
    else:
        field = texture
    colour = torch.lerp(ends[0, :, None, None], ends[1, :, None, None], field[None])
    finish = uniform(g, 0.0, 1.0)
    if finish < 0.3:  # shaded like a ball
        colour = colour * (1.15 - uniform(g, 0.3, 0.9) * q.square() - 0.25 * u)
    elif finish < 0.45:  # with a highlight
        colour = colour + (-((u - 0.3).square() + (q - 0.4).square()) * 25.0).exp()
    elif finish < 0.65:  # with a dark outline
        colour = colour * ((1.0 - q) * 12.0).clamp(0.0, 1.0)
    return colour


def _leaves(canvas: Tensor, g: Generator, palette: Tensor, count: int) -> Tensor:
    """Return the canvas with `count` occluding shapes on it, whose sizes follow a power law."""
    size = canvas.shape[1]
    canvas = canvas.clone()
    textures = [_texture(size, g) for _ in range(2)]
    only = pick(g, 6) if chance(g, 0.35) else None
    soft_scene = uniform(g, 0.0, 0.5)
    smallest = uniform(g, 0.02, 0.12)
    draws = torch.rand(count, 7, generator=g).tolist()
    for a, b, reach, turn, squeeze, blur, kind in draws:
        # The inverse of the cumulative distribution of a density r^-3, limited to 0.45 of the size.
        radius = max(1.0, size * min(0.45, smallest / math.sqrt(max(reach, 1e-3))))
        cx, cy, aspect = a * size, b * size, 0.3 + 0.7 * squeeze
        left, right = int(max(0, cx - radius * 1.5)), int(min(size, cx + radius * 1.5 + 1))
        top, bottom = int(max(0, cy - radius * 1.5)), int(min(size, cy + radius * 1.5 + 1))
        x = (torch.arange(left, right) - cx)[None, :] / radius
        y = (torch.arange(top, bottom) - cy)[:, None] / radius
        cos, sin = math.cos(turn * TAU), math.sin(turn * TAU)
        u, v = x * cos + y * sin, (y * cos - x * sin) / aspect
        q = _outline(int(kind * 6) if only is None else only, u, v, g)
        box = (slice(top, bottom), slice(left, right))
        fill = _filled(q, u, textures[pick(g, 2)][box], g, palette)
        edge = radius * aspect / (1.0 + (radius * blur if blur < soft_scene else 0.0))
        cover = ((1.0 - q) * edge + 0.5).clamp(0.0, 1.0)
        canvas[:, *box].lerp_(fill, cover[None])
    return canvas.clamp_(0.0, 1.0)


def _finished(canvas: Tensor, g: Generator) -> Tensor:
    """Return the canvas with light and shadow, focus, saturation, contrast, exposure and grain."""
    size = canvas.shape[1]
    if chance(g, 0.45):  # a power keeps black and white nearly unchanged
        light = noise_field(size, g, uniform(g, 1.8, 3.0)) * uniform(g, 0.1, 0.5)
        canvas = (canvas + 0.02).pow(light.exp())
    if chance(g, 0.3):
        focus = random_mask(size, g) if chance(g, 0.7) else torch.zeros(size, size)
        width = 3 + 2 * pick(g, 1 + size // 40)
        blurred = canvas
        for _ in range(2):
            blurred = F.avg_pool2d(blurred, width, 1, width // 2, count_include_pad=False)
        canvas = torch.lerp(blurred, canvas, focus)
    if chance(g, 0.5):
        canvas = torch.lerp(canvas.mean(dim=0, keepdim=True), canvas, uniform(g, 0.1, 1.0))
    cast = 0.06 * torch.randn(3, 1, 1, generator=g) * chance(g, 0.5)
    middle, spread = canvas.mean(), float(canvas.std())
    exposure = uniform(g, -0.12, 0.12) + 0.35 * (0.48 - middle)
    # Two similar palette colours have less contrast than a photograph. A standard deviation below
    # 0.2 is raised half of the way to 0.2 on a logarithmic scale, at most by the factor 4.
    contrast = uniform(g, 0.6, 1.5) * math.sqrt(max(1.0, min(16.0, 0.2 / max(spread, 1e-6))))
    canvas = (canvas - middle) * contrast + middle + exposure + cast
    if chance(g, 0.3):
        grain = torch.randn(3 if chance(g, 0.5) else 1, size, size, generator=g)
        canvas = canvas + uniform(g, 0.005, 0.07) * grain
    return canvas.clamp(0.0, 1.0)
