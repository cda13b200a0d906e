"""A stained glass window: the sun over hills and a river, with lead lines, lit from behind."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tools.painters.canvas import Array, Frame, Rng, blur, borders, distance, frame, nearest, smooth
from tools.painters.colour import blend, finish, lit, ramp, to_linear

SUN = (0.50, 0.335)  # x in picture widths, y in picture heights
# Name of a region -> the colours of its panes, and their distance in units of the frame.
GLASS = {
    "border": ("5a0f24 8c1d2f 2a1a5e 7a1840", 30),
    "sun": ("fff0b0 ffd34a ffb020", 34),
    "halo": ("ffb52e f78a1d f2641c", 32),
    "ray": ("ffd98a f9b85a f6cf9a ef9a6a", 46),
    "sky": ("0f2f8f 1b57b8 2a86cf 4fb0dd 2440a0", 44),
    "far": ("5a3f9a 7a4fb0 3f3a8f", 46),
    "mid": ("0f6a6a 1c8a78 2f9f8a 106080", 44),
    "near": ("1f6a2a 4f9a2a 8fb82a 2f7a3a", 42),
    "river": ("7fd6e6 3fb0d8 b8ecec 2f8fd0", 34),
    "flower": ("e0204f f04a5a c0187a ff7a6a", 22),
}


def _regions(f: Frame) -> NDArray[np.int64]:
    """Return each pixel's region: its index in GLASS, plus 20 times the number of its part."""
    dx, dy = f.x - SUN[0] * f.aspect, f.y - SUN[1]
    radius, turn = np.hypot(dx, dy), np.arctan2(dy, dx)
    wedge = np.floor((turn + 0.16 * np.sin(radius * 7)) / (2 * np.pi) * 26).astype(int)
    names = list(GLASS)
    region = names.index("sky") + 20 * (wedge + 30)
    region = np.where(wedge % 2 == 0, names.index("ray") + 20 * (wedge + 30), region)
    flame = np.abs((turn * 13 / np.pi + 2.2 * np.sin(radius * 22)) % 2 - 1)
    region = np.where(radius < 0.150 + 0.065 * flame, names.index("halo"), region)
    region = np.where(radius < 0.115, names.index("sun"), region)
    lines = [
        ("far", 0.565 + 0.045 * np.sin(6.0 * f.x + 0.4) + 0.02 * np.sin(15 * f.x)),
        ("mid", 0.640 + 0.050 * np.sin(5.2 * f.x + 2.6)),
        ("near", 0.745 + 0.045 * np.sin(4.2 * f.x + 5.1)),
    ]
    for name, line in lines:
        region = np.where(f.y > line, names.index(name), region)
    bend = 0.44 + 0.15 * np.sin(8.5 * (f.y - 0.60)) * smooth(0.62, 0.95, f.y)
    river = np.abs(f.x - bend) < 0.008 + 0.42 * np.maximum(f.y - 0.675, 0) ** 1.15
    region = np.where(river & (f.y > 0.675), names.index("river"), region)
    for i, (x, y, size) in enumerate(
        ((0.10, 0.86, 0.062), (0.19, 0.935, 0.05), (0.66, 0.90, 0.066))
    ):
        gap, spin = np.hypot(f.x - x, f.y - y), np.arctan2(f.y - y, f.x - x)
        bloom = gap < size * (0.70 + 0.36 * np.abs(np.cos(3 * spin + i)) ** 0.7)
        region = np.where(bloom, names.index("flower") + 20 * (i + 1), region)
        region = np.where(gap < size * 0.3, names.index("sun") + 20 * (i + 1), region)
    edge = np.minimum(np.minimum(f.x, f.aspect - f.x), np.minimum(f.y, 1 - f.y))
    return np.where(edge < 0.032, names.index("border"), region).astype(np.int64)


def _sites(f: Frame, region: NDArray[np.int64]) -> Array:
    """Return one point (x, y) in pixels per pane, spaced as GLASS says for its region."""
    spacing = np.array([gap for _, gap in GLASS.values()])[region % 20] * f.unit
    points = f.scatter(12)
    kept: list[Array] = []
    taken = np.zeros((0, 2), np.float32)
    for point in points:
        room = f.at(spacing, point)
        if not len(taken) or ((taken - point) ** 2).sum(1).min() > (0.8 * room) ** 2:
            kept.append(point)
            taken = np.array(kept)
    return taken


def _halation(f: Frame, picture: Array) -> Array:
    """Return the light that bright glass spreads over the lead, like `picture` in linear RGB."""
    bright = picture**1.3
    spill = np.zeros_like(picture)
    for radius, share in ((4.0, 0.16), (26.0, 0.14)):
        for c in range(3):
            spill[..., c] += share * blur(bright[..., c], radius * f.unit)
    return spill


def stained_glass(size: int, rng: Rng) -> Array:
    """Return the window, sRGB (H, W, 3) in [0, 1], `size` pixels high."""
    f = frame(size, 0.78, rng, 2)
    warp = [0.007 * f.noise(90) for _ in range(2)]
    region = _regions(replace(f, x=f.x + warp[0], y=f.y + warp[1]))
    sites = _sites(f, region)
    pane = nearest(sites, f.shape, int(46 * f.unit), region)
    design, seam = borders(region), borders(pane + len(sites) * region)
    reach = int(12 * f.unit) + 2
    # Distances in pixels to the middle of the lead, which is wider around the large shapes.
    wobble = 0.35 * f.unit * f.noise(12)
    gap = distance(~seam, reach) + wobble
    rim = distance(~design, reach) + wobble
    half = 1.9 * f.unit
    lead = np.minimum(gap - half, rim - 1.75 * half)

    pick = rng.random(len(sites))
    vary = rng.normal(0, 1, (len(sites), 3)).astype(np.float32) * [0.045, 0.014, 0.014]
    streak = f.noise((70, 9), 2.2)
    cross = f.noise((9, 60), 2.2)
    swirl = np.where(rng.random(len(sites))[pane] < 0.5, streak, cross)
    colour = np.zeros((*f.shape, 3), np.float32)
    for number, (codes, _) in enumerate(GLASS.values()):
        here = region % 20 == number
        colour[here] = ramp(codes, pick[pane[here]] + 0.13 * swirl[here])
    colour += vary[pane].astype(np.float32)
    # Lightness falls with the distance from the sun and towards the lead; bubbles are bright spots.
    away = np.hypot(f.x - SUN[0] * f.aspect, f.y - SUN[1])
    colour[..., 0] += 0.05 * swirl + 0.07 * smooth(0.65, 0.0, away) - 0.05
    colour[..., 0] -= 0.20 * np.exp(-np.maximum(lead, 0) / (3.2 * f.unit))
    colour[..., 0] += 0.025 * np.maximum(f.noise(2.2, 4) - 1.4, 0)
    ripple = 1.3 * f.noise((26, 14), 3) * f.unit
    light = lit(to_linear(colour), ripple, 0.35, 0.03)

    metal = ramp("14141a 2a2a30 4a4a4c", 0.4 + 0.2 * f.noise(5, 2))
    round_ = np.sqrt(np.maximum(-lead, 0) * f.unit) * 1.2
    joint = lit(to_linear(metal), blur(round_, 0.8 * f.unit), 0.8, 0.15)
    picture = blend(joint, light, smooth(-0.7, 0.7, lead))
    return finish(picture + _halation(f, picture), 2)
