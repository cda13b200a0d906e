"""A windy night over a wheat field, in thick oil strokes."""

import numpy as np

from tools.painters.canvas import Array, Frame, Rng, bump, frame, noise, smooth
from tools.painters.colour import blend, finish, lit, ramp, to_linear
from tools.painters.strokes import Surface, lay, tinted, trace

MOON = (0.99, 0.21)
EDDIES = [  # x, y, strength, radius
    (0.45, 0.27, 2.6, 0.15),
    (0.73, 0.40, -2.2, 0.10),
    (0.13, 0.10, -1.8, 0.10),
    (0.19, 0.47, 1.9, 0.085),
    (*MOON, 2.2, 0.13),
    (1.22, 0.47, 1.7, 0.08),
]
STARS = [(0.28, 0.07), (0.68, 0.10), (0.80, 0.24), (0.06, 0.30), (1.21, 0.07), (0.58, 0.47)]


def _wind(f: Frame) -> tuple[Array, Array]:
    """Return the wind's stream function (H, W), and the wind's direction (H, W) in radians."""
    psi = f.y + 0.10 * np.sin(3.3 * f.x + 0.6) * f.y + 0.012 * f.noise(120)
    for x, y, strength, radius in EDDIES:
        psi = psi + strength * radius * bump(f, (x, y), radius)
    for star in STARS:
        psi = psi + 0.12 * bump(f, star, 0.036)
    gy, gx = np.gradient(psi)
    return psi, np.arctan2(-gx, gy)


def _sky(f: Frame, psi: Array) -> Array:
    """Return the sky's OKLab colours: blue bands along the wind, warm near moon and stars."""
    bands = np.sin(psi * 34 + 0.7 * f.noise(70))
    position = 0.46 + 0.30 * bands + 0.14 * f.noise(130) - 0.35 * (0.3 - f.y)
    sky = ramp("0d1440 172a6e 2148a0 2f74c0 5aa5cf 9ccfd0 dfe6c0", position)
    radius = np.hypot(f.x - MOON[0], f.y - MOON[1])
    glow = smooth(0.30, 0.07, radius) * (0.75 + 0.25 * np.sin(radius * 110))
    sky = blend(sky, ramp("8fc3b0 d9d582 f3cf4a f6b32a", glow), glow * 1.15)
    sky = blend(
        sky, ramp("f9e27a fff6cf", smooth(0.07, 0.02, radius)), smooth(0.075, 0.062, radius)
    )
    for star in STARS:
        shine = bump(f, star, 0.034)
        sky = blend(sky, ramp("7fb8b8 f0d860 fff3c0", shine), shine * 1.5)
    return sky


def _land(f: Frame, colour: Array, angle: Array) -> tuple[Array, Array]:
    """Add hills and rows of wheat; return the new colours and stroke angles in radians."""
    rough = f.noise(60)
    ridges = [
        (0.60, 0.035, 4.1, 0.3, "2a3f86 4467a8 7fa6bd"),
        (0.66, 0.040, 3.0, 2.2, "1f3f6b 2f6f7d 6fa083"),
        (0.73, 0.025, 5.2, 4.0, "1a2f4f 2f5f4d 8a9a4a"),
    ]
    for base, swing, rate, phase, codes in ridges:
        line = base + swing * np.sin(rate * f.x + phase) + 0.4 * swing * np.sin(2.7 * rate * f.x)
        below = f.y > line
        position = 0.45 + 0.25 * rough - 3.5 * (f.y - line) + 0.25 * np.sin(90 * (f.y - line))
        colour = np.where(below[..., None], ramp(codes, position), colour)
        slope = np.arctan(np.gradient(line, axis=1) * f.shape[0])
        angle = np.where(below, slope + 0.35 * np.sin(9 * f.x + phase), angle)
    line = 0.775 + 0.018 * np.sin(2.6 * f.x + 1)
    below = f.y > line
    depth = np.maximum(f.y - line, 0)
    furrow = (f.x - 0.86) / (f.y - line + 0.12)
    position = 0.55 + 0.28 * np.sin(furrow * 4.2 + 0.5 * rough) + 0.15 * rough - 0.6 * depth
    wheat = ramp("3a2f3a 6b4a22 b0761f dba52c f0cb55 f8e7a0", position)
    wheat = blend(
        wheat, ramp("1d3a5c 2f6a5a", rough), 0.85 * smooth(0.75, 0.98, -np.sin(furrow * 4.2))
    )
    colour = np.where(below[..., None], wheat, colour)
    lean = np.arctan2(1.0, 0.55 * furrow + 0.5 * np.sin(5 * f.x + 7 * f.y) + 0.2 * rough)
    return colour, np.where(below, lean, angle)


def _trees(f: Frame, colour: Array, angle: Array) -> tuple[Array, Array]:
    """Add two dark, flame-shaped poplars at the left; return the new colours and angles."""
    for x, top, half in ((0.235, 0.17, 0.085), (0.355, 0.42, 0.055)):
        rise = (f.y - top) / (0.86 - top)
        sway = x + 0.022 * np.sin(7 * rise + 40 * x) * (1 - rise)
        girth = half * np.clip(rise, 0, 1) ** 0.7 * np.clip(1.06 - rise, 0, 1) ** 0.35
        side = (f.x - sway) / (girth + 1e-4)
        inside = (np.abs(side) < 1 + 0.12 * np.sin(60 * rise)) & (rise > 0) & (rise < 1.05)
        position = 0.35 - 0.25 * side + 0.2 * f.noise(14)
        tree = ramp("0b1526 12303a 1f4a38 3f6b35 8a8f3c", position)
        colour = np.where(inside[..., None], tree, colour)
        lick = np.pi / 2 - 0.30 * side + 0.35 * np.sin(16 * rise + 3 * side)
        angle = np.where(inside, lick, angle)
    return colour, angle


def oil(size: int, rng: Rng) -> Array:
    """Return the oil picture, sRGB (H, W, 3) in [0, 1], `size` pixels wide."""
    f = frame(size, 1.28, rng, 2)
    psi, angle = _wind(f)
    colour, angle = _land(f, _sky(f, psi), angle)
    colour, angle = _trees(f, colour, angle)
    angle = angle + 0.10 * f.noise(30)
    ground = ramp("4a2f22 6b4a30", noise(rng, f.shape, (50, 50)))
    surface = Surface(ground, noise(rng, f.shape, (2, 2)) * 0.1)
    layers = [  # width, length, spacing, tint, load
        (24, 105, 24, 0.025, 0.7),
        (13, 74, 14, 0.035, 1.0),
        (8, 50, 9.0, 0.042, 1.2),
        (4.6, 32, 10.5, 0.055, 1.4),
    ]
    for wide, long, apart, tint, load in layers:
        starts = f.scatter(apart)
        vary = rng.uniform(0.65, 1.35, (2, len(starts))).astype(np.float32)
        paint = tinted(rng, f.at(colour, starts), tint, tint * 0.4)
        paths = trace(f, angle, starts, long * f.unit * vary[0])
        lay(surface, paths, wide * f.unit * vary[1], paint, rng, load=load, hair=1.5 * f.unit)
    return finish(lit(to_linear(surface.colour), surface.height, 1.1 * f.unit / 2, 0.05), 2)
