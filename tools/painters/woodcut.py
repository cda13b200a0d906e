"""A mountain lake cut in wood: tapering lines in one dark ink over flat tints."""

from dataclasses import replace

import numpy as np

from tools.painters.canvas import Array, Frame, Rng, frame, smooth
from tools.painters.colour import blend, finish, hex_lab, ramp, to_linear

PEAK = (0.60, 0.20)
SUN = (0.93, 0.235, 0.105)
HORIZON = 0.60


class _Block:
    """The key block: how much ink each place holds, cut along its own lines."""

    def __init__(self, f: Frame) -> None:
        self.f = f
        self.ink = np.zeros(f.shape, np.float32)
        # Chatter of the knife: along each line the cut swells and thins.
        self.swell = f.noise(16, 2.2)
        self.drift = f.noise(70)

    def cut(self, where: Array, lines: Array, tone: Array) -> None:
        """Hatch a region: `lines` rises by one from line to line, `tone` is its darkness."""
        wave = np.abs(((lines + 0.22 * self.drift) % 1) * 2 - 1)
        slope = np.hypot(*np.gradient(lines)) * 2 + 1e-3
        cover = np.clip(tone + 0.13 * self.swell, -0.2, 1.2)
        ink = np.clip((wave - (1 - cover)) / slope + 0.5, 0, 1)
        self.ink = np.where(where, ink, self.ink)


def _ridge(x: Array, rng: Rng, base: float, swing: float, rate: float) -> Array:
    """A mountain's outline: sines of falling size with random phases."""
    line = np.full_like(x, base)
    for octave in range(6):
        phase = rng.uniform(0, 6.28)
        line += swing * 0.55**octave * np.sin(rate * 1.9**octave * x + phase)
    return line


def _mountains(f: Frame, block: _Block, tint: Array) -> Array:
    """The great peak, half in shade, and foothills before it."""
    dx, dy = f.x - PEAK[0], f.y - PEAK[1]
    craggy = f.noise(38, 2.2)
    flank = dy - 0.72 * np.abs(dx) ** 1.12 - 0.012 * craggy * smooth(0, 0.1, np.abs(dx))
    peak = (flank > 0) & (f.y < HORIZON)
    spine = dx - 0.07 * np.sin(11 * dy) - 0.03 * np.sin(27 * dy + 1) - 0.012 * craggy
    gully = np.sin(26 * dx / (dy + 0.12) + 2.2 * craggy)
    shade = spine > 0.22 * dy * gully * 0.4
    snow = smooth(0.16, 0.06, dy + 0.035 * gully)
    tone = np.where(shade, 0.86 - 0.25 * snow, 0.30 + 0.22 * gully - 0.4 * snow) - 0.45 * smooth(
        0.5, 0.62, f.y
    )
    lines = np.where(shade, (f.y * 0.75 + dx * 1.05) * 100, (f.y * 0.8 - dx * 1.0) * 92)
    block.cut(peak, lines + 0.5 * craggy, tone)
    wash = ramp(
        "e9e0c8 c9d2c6 8fb0b4", 0.2 + 0.45 * shade + 0.5 * smooth(0.2, 0.45, dy) - 0.5 * snow
    )
    tint = np.where(peak[..., None], wash, tint)
    for base, swing, rate, dark, codes in (
        (0.505, 0.030, 5.0, 0.44, "a9c0b4 7f9f98"),
        (0.555, 0.024, 7.0, 0.72, "88a595 5f8580"),
    ):
        line = _ridge(f.x, f.rng, base, swing, rate)
        here = (f.y > line) & (f.y < HORIZON)
        lit_side = np.gradient(line, axis=1) * f.shape[0]
        tone = dark + 0.28 * np.clip(lit_side, -1, 1) - 2.0 * (f.y - line)
        # Lines fall down the slopes like grass.
        block.cut(here, f.x * 84 + (f.y - line) * 55 * np.cos(5 * f.x + base * 40), tone)
        rim = np.abs(f.y - line) * f.shape[0] < 1.3 * f.unit
        block.ink = np.maximum(block.ink, rim & (f.y < HORIZON))
        tint = np.where(here[..., None], ramp(codes, (f.y - line) * 12), tint)
    return tint


def _sky(f: Frame, block: _Block, tint: Array) -> Array:
    """Long wavering lines that open where clouds drift, and the red sun."""
    gap = np.hypot(f.x - SUN[0], f.y - SUN[1])
    cloud = np.sin(
        17 * f.y + 1.6 * np.sin(2.1 * f.x + 1) + 0.9 * np.sin(5.3 * f.x) + 0.5 * block.drift
    )
    puff = smooth(0.35, 0.75, cloud)
    tone = 0.80 - 1.30 * f.y - 0.75 * puff
    sky = np.ones(f.shape, bool)
    flow = f.y + 0.012 * np.sin(4 * f.x + 9 * f.y) + 0.02 * np.sin(2 * f.x)
    block.cut(sky, flow * 92 + 0.4 * block.drift, tone)
    edge = np.abs(cloud - 0.35) / (np.hypot(*np.gradient(cloud)) + 1e-6)
    block.ink = np.maximum(block.ink, smooth(1.6, 0.8, edge / f.unit) * (block.swell > -0.9))
    tint = blend(tint, ramp("2f6f86 7fa9ac e6d8b4", f.y / 0.42), (1 - puff) * 0.95)
    sun = smooth(1, -1, (gap - SUN[2]) * f.shape[0] + 0.7 * block.swell)
    block.ink *= 1 - sun
    return blend(tint, ramp("e0552f c9341f", (f.y - SUN[1]) / 0.2 + 0.5), sun)


def _lake(f: Frame, block: _Block, tint: Array) -> Array:
    """Water in short cut waves, with the peak's shade and the sun's road on it."""
    depth = np.maximum(f.y - HORIZON, 0)
    ripple = f.noise((6, 46), 2.4)
    lines = 30 * np.log(0.13 + depth) + 0.55 * np.sin(21 * f.x + 60 * depth) + 0.35 * ripple
    mirror = smooth(0.10, -0.06, np.abs(f.x - PEAK[0]) - 0.34 + 0.9 * depth + 0.02 * ripple)
    road = np.exp(-(((f.x - SUN[0]) / (0.05 + 0.16 * depth)) ** 2))
    tone = 0.34 + 0.42 * mirror + 0.14 * ripple + 0.5 * smooth(0.25, 0.4, depth) - 0.75 * road
    water = f.y >= HORIZON
    block.cut(water, lines, tone)
    wash = ramp("e6d8b4 8fb6b6 3f7f92 245f7a", 0.15 + 1.9 * depth + 0.2 * mirror)
    wash = blend(wash, hex_lab("dd5a35"), road * (0.75 + 0.3 * ripple))
    shore = np.abs(f.y - HORIZON) * f.shape[0] < 1.5 * f.unit
    block.ink = np.maximum(block.ink, shore)
    return np.where(water[..., None], wash, tint)


def _pines(f: Frame, block: _Block, tint: Array) -> Array:
    """Dark pines on a near point, with the light cut out of their boughs."""
    bank = (
        0.93
        - 0.17 * smooth(0.62, 0.0, f.x)
        - 0.012 * np.sin(17 * f.x)
        - 0.1 * smooth(1.0, 1.3, f.x)
    )
    land = f.y > bank + 0.004 * block.swell
    block.cut(land, (f.y - 0.35 * f.x - 0.03 * np.sin(9 * f.x)) * 88, 0.80 + 0.10 * block.drift)
    tint = np.where(land[..., None], hex_lab("7f8f5f"), tint)
    trees = [
        (0.40, 0.50, 0.062),
        (0.055, 0.20, 0.115),
        (0.165, 0.055, 0.135),
        (0.295, 0.36, 0.090),
        (1.225, 0.60, 0.07),
    ]
    for x, top, half in trees:
        foot = 0.93 - 0.17 * float(smooth(0.62, 0.0, np.asarray(x, np.float32))) + 0.015
        if x > 1:
            foot = 0.86
        rise = np.clip((f.y - top) / (foot - top), 0, 1)
        side = f.x - x - 0.006 * np.sin(9 * f.y + 30 * x)
        tier = (rise * (7 + 30 * half) + 0.9 * np.abs(side) / half + f.rng.uniform()) % 1
        girth = half * rise**0.9 * (0.50 + 0.50 * tier) + 0.0035 * block.swell * rise
        bough = (np.abs(side) < girth) & (f.y > top) & (rise < 0.97)
        trunk = (np.abs(side) < 0.007 + 0.006 * rise) & (f.y > top + 0.03) & (f.y < foot + 0.01)
        # Needles hang outward; the sunny right side is cut more open.
        lines = side * 70 + np.sign(side) * f.y * -46
        tone = 0.97 - 0.40 * smooth(-0.3, 0.9, side / half) - 0.25 * smooth(0.25, 0.0, tier)
        block.cut(bough, lines + 0.3 * block.drift, tone)
        block.ink = np.maximum(block.ink, trunk)
        tint = np.where(
            (bough | trunk)[..., None], ramp("3f6a55 8f9f6a", 0.5 + side / half / 2), tint
        )
    return tint


def woodcut(size: int, rng: Rng) -> Array:
    """Print the woodcut, `size` pixels wide."""
    f = frame(size, 1.3, rng, 2)
    warp = [0.0022 * f.noise(22) for _ in range(2)]
    place = replace(f, x=f.x + warp[0], y=f.y + warp[1])
    block = _Block(place)
    paper = ramp("e6d8b6 f1e6cb f7efdc", 0.5 + 0.25 * f.noise(60, 2))
    tint = _sky(place, block, paper.copy())
    tint = _mountains(place, block, tint)
    tint = _lake(place, block, tint)
    tint = _pines(place, block, tint)
    # The wood's grain shows in the flat tints, and specks of paper in the ink.
    grain = f.noise((3, 160), 1.8)
    fibre = f.noise(1.8, 1.8)
    cover = 0.86 + 0.05 * grain + 0.05 * fibre
    shift = (int(1.2 * f.unit), -int(1.6 * f.unit))  # the blocks never register perfectly
    picture = blend(paper, np.roll(tint, shift, (0, 1)), cover)
    ink = ramp("10182c 1c2a44 2c3c58", 0.4 + 0.15 * grain + 0.2 * fibre)
    frame_edge = np.minimum(np.minimum(f.x, f.aspect - f.x), np.minimum(f.y, 1 - f.y))
    inside = smooth(0.020, 0.0225, frame_edge + 0.0012 * block.swell)
    rule = inside * smooth(0.029, 0.0265, frame_edge + 0.0010 * block.swell)
    picture = blend(paper, picture, inside)
    dab = np.maximum(block.ink * inside, rule) * (
        0.95 - 0.5 * smooth(1.5, 2.6, fibre + 0.3 * grain)
    )
    return finish(to_linear(blend(picture, ink, dab)), 2)
