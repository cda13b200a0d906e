"""A summer riverbank, put together from dots of divided colour."""

import numpy as np

from tools.painters.canvas import Array, Frame, Rng, bump, frame, smooth
from tools.painters.colour import blend, finish, hex_lab, lit, ramp, to_linear
from tools.painters.strokes import Surface, lay, trace

SHORE = 0.47
LAYERS = (  # width, spacing, how far off a dot may look for its colour, relief
    (17, 12, 8, 0.5),
    (11.5, 8.6, 3, 0.8),
    (8.5, 8.0, 1.5, 1.0),
    (6, 11, 1, 1.2),
)


def _sky(f: Frame) -> Array:
    """A pale sky, warm at the shore, with slow clouds."""
    cloud = f.noise((45, 110), 2.6)
    sky = ramp("4f8fd6 7fb2e2 b4d3e6 f3dfc0 f8cfa0", f.y / SHORE + 0.05 * cloud)
    sky = blend(sky, ramp("e8d8e8 fdf0dc fff6e0", cloud * 0.4), smooth(0.1, 1.3, cloud) * 0.85)
    return blend(sky, hex_lab("fff3c4"), 0.9 * bump(f, (0.34, 0.36), 0.16))


def _far_bank(f: Frame, colour: Array) -> Array:
    """Round trees in blue and violet shade along the far shore."""
    rough = f.noise(22, 2.4)
    for back, (base, codes) in enumerate(
        ((0.135, "5f6fb8 7f8fc8 a8b4cf"), (0.085, "23407f 2f6f76 5f9f58 c0c860"))
    ):
        top = np.full_like(f.x, 0.45 * base)
        for i in range(13):
            middle = (i + 0.3 * np.sin(7.0 * i + back)) / 10 - 0.05
            tall = base * (0.55 + 0.45 * np.sin(2.3 * i + 1.7 * back) ** 2)
            wide = 0.075 + 0.02 * np.cos(3.0 * i)
            top = np.maximum(top, tall * np.sqrt(np.maximum(1 - ((f.x - middle) / wide) ** 2, 0)))
        up = SHORE - f.y + 0.006 * rough
        inside = (up > -0.02) & (up < top + 0.02)  # the water covers its foot
        tone = 0.75 * up / (top + 0.03) + 0.16 * rough + 0.1
        colour = np.where(inside[..., None], ramp(codes, tone), colour)
    return colour


def _sails(f: Frame, colour: Array) -> Array:
    """Three sailing boats on the far water."""
    for x, y, size in ((0.50, 0.535, 0.21), (0.72, 0.50, 0.12), (0.16, 0.515, 0.15)):
        up, side = (y - f.y) / size, (f.x - x) / size
        sail = (up > 0.08) & (up < 1.25) & (side > -0.02) & (side < 0.52 * (1.25 - up) / 1.2)
        jib = (up > 0.08) & (up < 1.0) & (side < -0.05) & (side > -0.38 * (1.05 - up))
        hull = (np.abs(up) < 0.07) & (np.abs(side) < 0.42 + 0.8 * up)
        colour = np.where(sail[..., None], hex_lab("fff4dc"), colour)
        colour = np.where(jib[..., None], hex_lab("f6c9a0"), colour)
        colour = np.where(hull[..., None], hex_lab("7a2f3a"), colour)
    return colour


def _water(f: Frame, colour: Array) -> Array:
    """The river mirrors what is above the shore, broken by ripples."""
    ripple = f.noise((5, 60), 2.5)
    depth = f.y - SHORE
    above = np.clip(SHORE - 0.9 * depth + 0.02 * ripple, 0, SHORE - 0.01)
    rows = above * f.shape[0]
    cols = np.clip(f.x * f.shape[0] + 6 * ripple * f.unit, 0, f.shape[1] - 1)
    mirror = colour[rows.astype(int), cols.astype(int)]
    tint = ramp("3f86c4 5fb0c8 a8d8d0", 0.4 + 0.25 * ripple)
    water = blend(mirror, tint, 0.42 + 0.12 * ripple)
    water = blend(
        water, hex_lab("fff0b8"), 1.2 * bump(f, (0.34, 0.56), 0.13) * smooth(0, 1.2, ripple)
    )
    return np.where((depth > 0)[..., None], water, colour)


def _lawn(f: Frame, colour: Array) -> Array:
    """The near bank: sunlit grass, pools of violet shade, and flowers."""
    rough = f.noise((14, 40), 2.4)
    line = 0.90 - 0.20 * smooth(0.1, 1.4, f.x) - 0.018 * np.sin(7 * f.x) + 0.004 * rough
    inside = f.y > line
    grass = ramp("4f7f2f 7fae36 b6cc48 ecdf72", 0.62 + 0.2 * rough - 0.8 * (f.y - line))
    shade = smooth(
        0.35, 0.75, np.sin(6.5 * f.x + 16 * f.y + 0.8) + 0.35 * rough + 0.4 * (f.x - 0.5)
    )
    grass = blend(grass, ramp("23306f 2a5f6a 2f6f4a", 0.5 + 0.3 * rough), shade * 0.9)
    bloom = smooth(1.5, 1.9, f.noise(9, 3))
    grass = blend(grass, ramp("e8502f f07a9a fff0e0", 0.5 + 0.4 * rough), bloom)
    return np.where(inside[..., None], grass, colour)


def _tree(f: Frame, colour: Array) -> Array:
    """A large tree at the right that leans over the water and frames the view."""
    trunk = 1.13 - 0.07 * np.sin(2.4 * f.y + 0.4) + 0.03 * smooth(0.6, 0.9, f.y)
    girth = 0.020 + 0.03 * smooth(0.66, 0.82, f.y)
    inside = (np.abs(f.x - trunk) < girth) & (f.y < 0.80)
    bark = ramp("2a1f4a 5a3350 a85f3a f0b060", 0.5 - 0.5 * (f.x - trunk) / girth)
    colour = np.where(inside[..., None], bark, colour)
    rough = f.noise(26, 2.2)
    crown = np.full_like(f.x, -1)
    light = np.zeros_like(f.x)
    for x, y, r in (
        (1.10, 0.10, 0.21), (0.93, 0.06, 0.13), (1.25, 0.26, 0.15), (0.98, 0.24, 0.115),
        (1.13, 0.33, 0.10), (0.80, 0.13, 0.075), (1.27, 0.05, 0.17), (0.885, 0.335, 0.055),
    ):  # fmt: skip
        gap = 1 - np.hypot(f.x - x, (f.y - y) * 1.25) / r
        nearer = gap > crown
        crown = np.where(nearer, gap, crown)
        light = np.where(nearer, 0.5 - 0.45 * (f.x - x) / r - 0.55 * (f.y - y) / r, light)
    leaf = crown + 0.16 * rough > 0.04
    leaves = ramp("17285f 1f4f6a 2f7f4f 86b23a e6d45a", light + 0.16 * rough)
    return np.where(leaf[..., None], leaves, colour)


def _divided(rng: Rng, colour: Array) -> Array:
    """Split each colour into purer neighbours, now and then answered by its opposite."""
    count = len(colour)
    hue = np.arctan2(colour[:, 2], colour[:, 1]) + rng.normal(0, 0.36, count)
    chroma = np.hypot(colour[:, 1], colour[:, 2]) * 1.12 + rng.uniform(0.015, 0.05, count)
    opposite = rng.random(count) < 0.08
    hue = np.where(opposite, hue + np.pi, hue)
    chroma = np.where(opposite, chroma * 0.7, np.minimum(chroma, 0.19))
    light = np.clip(colour[:, 0] + rng.normal(0, 0.04, count), 0.15, 0.97)
    return np.stack([light, chroma * np.cos(hue), chroma * np.sin(hue)], -1).astype(np.float32)


def pointillism(size: int, rng: Rng) -> Array:
    """Paint the riverbank, `size` pixels wide."""
    f = frame(size, 1.3, rng, 2)
    colour = _sails(f, _far_bank(f, _sky(f)))
    # Sails first for the mirror to see, then again before the water.
    colour = _sails(f, _water(f, colour))
    colour = _tree(f, _lawn(f, colour))
    sway = 0.9 * f.noise(60)
    angle = np.where(f.y < SHORE, 0.5 + sway, 0.25 * sway)
    weave = f.noise(1.6, 2)
    surface = Surface(blend(hex_lab("e8d9b8"), colour, np.full(f.shape, 0.6)), 0.12 * weave)
    for wide, apart, spread, load in LAYERS:
        starts = f.scatter(apart)
        vary = rng.uniform(0.75, 1.2, (2, len(starts))).astype(np.float32)
        # Large dots look a little beside themselves, so that edges dissolve.
        look = starts + rng.normal(0, spread * 0.4 * f.unit, starts.shape)
        paint = _divided(rng, f.at(colour, look.astype(np.float32)))
        width = wide * f.unit * vary[0]
        paths = trace(f, angle, starts, width * (0.95 + 0.35 * vary[1]), knots=4)
        lay(
            surface,
            paths,
            width,
            paint,
            rng,
            load=load,
            dry=0.2,
            blunt=2.2,
            streak=0.03,
            hair=2 * f.unit,
        )
    return finish(lit(to_linear(surface.colour), surface.height, 0.8 * f.unit / 2, 0.03), 2)
