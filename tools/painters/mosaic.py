"""Two fish in a mosaic sea, set in rows that follow their outlines."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tools.painters.canvas import Array, Frame, Rng, blur, borders, distance, frame, nearest, smooth
from tools.painters.colour import blend, finish, hex_lab, lit, ramp, to_linear

FISH = [  # x, y, length, heading, belly to back colours
    (0.50, 0.36, 0.74, 0.12, "fbe3b0 f4b23c ea7a24 c23a1e 7d1f24"),
    (0.84, 0.76, 0.54, 3.35, "fff4d8 f2d88a d99a3a a8562a 5f2a2a"),
]
TILE = 13.5


def _fish(f: Frame, x: float, y: float, length: float, heading: float) -> dict[str, Array]:
    """Coordinates along and across a fish and its rough outline (positive inside)."""
    dx, dy = f.x - x, f.y - y
    u = (dx * np.cos(heading) + dy * np.sin(heading)) / length
    v = (dy * np.cos(heading) - dx * np.sin(heading)) / length
    v = v - 0.05 * np.sin(4 * u + 0.8) + 0.02
    if np.cos(heading) < 0:
        v = -v  # the back stays on top
    nose = np.clip(0.5 - u, 0, 1.2)
    body = 0.205 * np.sin(np.pi * np.clip(nose / 0.90, 0, 1) ** 0.72) ** 0.85 + 0.035 * (nose > 0)
    body = np.where((u < 0.5) & (u > -0.36), body, -1) - np.abs(v)
    fork = -0.36 - u
    tail = 0.05 + 0.72 * fork - np.abs(v)
    tail = np.where((fork > -0.03) & (fork < 0.09 + 0.58 * np.abs(v)), tail, -1)
    crest = 0.31 * np.sin(np.pi * np.clip((0.26 - u) / 0.52, 0, 1)) ** 0.5
    fin = np.where((u > -0.26) & (u < 0.26) & (v < 0), crest - np.abs(v), -1)
    low = np.where((np.abs(u - 0.20 + 1.0 * v) < 0.09) & (v > 0), 0.27 - v, -1)
    return {"u": u, "v": v, "body": body, "tail": tail, "fin": np.maximum(fin, low)}


def _design(f: Frame) -> tuple[NDArray[np.int64], Array]:
    """Region numbers and the colour of every place."""
    swell = f.noise(90)
    wave = np.sin(24 * f.y + 2.2 * np.sin(3.2 * f.x) + 1.1 * np.sin(6.1 * f.x + 1) + 0.25 * swell)
    place = 0.42 + 0.26 * wave + 0.10 * swell - 0.30 * (f.y - 0.5)
    colour = ramp("0a2350 12447f 1a76a6 2fa5b5 7fd0c0 d5efd8", place)
    region = (wave > 0.55).astype(np.int64)
    for i, (*spot, codes) in enumerate(FISH):
        fish, base = _fish(f, *spot), 10 * (i + 1)
        u, v = fish["u"], fish["v"]
        scales = np.sin(34 * u + 2.2 * np.cos(14 * v)) * smooth(0.30, 0.22, u)
        back = ramp(codes, 0.42 - 2.1 * v + 0.16 * scales)
        fins = ramp("6a1430 b8263a f0663a f8b04a", 0.5 + 0.5 * np.sin(55 * u + 70 * np.abs(v)))
        finny = (fish["fin"] > 0) | (fish["tail"] > 0)
        colour = np.where(finny[..., None], fins, colour)
        region = np.where(finny, base + 1, region)
        inside = fish["body"] > 0
        colour = np.where(inside[..., None], back, colour)
        region = np.where(inside, base + 2 + (v > -0.02), region)
        gill = inside & (np.abs(u - 0.27 + 1.6 * v * v) < 0.014)
        face = inside & (u > 0.284 - 1.6 * v * v)
        colour = np.where(face[..., None], ramp(codes, 0.30 - 1.6 * v), colour)
        colour = np.where(gill[..., None], hex_lab("5a1420"), colour)
        region = np.where(gill, base + 4, np.where(face, base + 5, region))
        eye = np.hypot(u - 0.375, v + 0.035)
        colour = np.where((eye < 0.048)[..., None], hex_lab("fdf6e0"), colour)
        colour = np.where((eye < 0.022)[..., None], hex_lab("101018"), colour)
        region = np.where(eye < 0.048, base + 6 + (eye < 0.022), region)
    return region, colour


def _rows(f: Frame, region: NDArray[np.int64]) -> Array:
    """Direction across the rows: away from the fish, fading into the waves' own."""
    shape = region >= 10
    reach = int(115 * f.unit)
    gap = distance(~shape, reach) - np.minimum(distance(shape, reach), reach)
    gy, gx = np.gradient(blur(gap, 5 * f.unit))
    near = smooth(70 * f.unit, 30 * f.unit, gap)
    slope = -(2.2 * 3.2 * np.cos(3.2 * f.x) + 1.1 * 6.1 * np.cos(6.1 * f.x + 1)) / 24
    size = np.hypot(gx, gy) + 1e-6
    # Doubled angles: a row has no forward and backward.
    ours, waves = 2 * np.arctan2(gy / size, gx / size), 2 * np.arctan2(1.0, -slope)
    cos = near * np.cos(ours) + (1 - near) * np.cos(waves)
    sin = near * np.sin(ours) + (1 - near) * np.sin(waves)
    return 0.5 * np.arctan2(blur(sin, 4 * f.unit), blur(cos, 4 * f.unit))


def _eyes(sites: Array, region: NDArray[np.int64]) -> Array:
    """Replace the stones of each eye: one pupil, and a ring laid by hand."""
    kept = [sites]
    for base in (10, 20):
        rows, cols = np.nonzero(region == base + 7)
        if not len(rows):
            continue
        middle = np.array([cols.mean(), rows.mean()])
        ring_rows, ring_cols = np.nonzero(region == base + 6)
        turn = np.argsort(np.arctan2(ring_rows - middle[1], ring_cols - middle[0]))
        picks = turn[np.linspace(0, len(turn), 7, endpoint=False).astype(int)]
        ring = np.stack([ring_cols[picks], ring_rows[picks]], -1)
        radius = np.hypot(*(ring - middle).T).max(initial=0)
        kept[0] = kept[0][np.hypot(*(kept[0] - middle).T) > radius + 1]
        kept += [middle[None], ring]
    return np.concatenate(kept).astype(np.float32)


def _settle(f: Frame, sites: Array, region: NDArray[np.int64], angle: Array) -> Array:
    """Let the tesserae push one another into even rows."""
    y, x = np.mgrid[: f.shape[0], : f.shape[1]]
    for _ in range(14):
        owner = nearest(sites, f.shape, int(TILE * f.unit) + 2, region, f.at(angle, sites)).ravel()
        count = np.bincount(owner, minlength=len(sites))
        middle = np.stack([np.bincount(owner, g.ravel(), len(sites)) for g in (x, y)], -1)
        sites = np.where(count[:, None] > 0, middle / np.maximum(count, 1)[:, None], sites)
        sites = sites.astype(np.float32)
    return sites


def mosaic(size: int, rng: Rng) -> Array:
    """Set the mosaic, `size` pixels wide."""
    small, f = frame(size, 1.25, rng, 1), frame(size, 1.25, rng, 2)
    bend = small.noise(80) * 0.006
    region, colour = _design(replace(small, x=small.x + bend, y=small.y + bend))
    angle = _rows(small, region)
    sites = _eyes(small.scatter(TILE), region)
    sites = _settle(small, sites, region, angle)
    paint = small.at(colour, sites)
    turn = small.at(angle, sites)
    wide = region.repeat(2, 0).repeat(2, 1)
    wide = wide[: f.shape[0], : f.shape[1]]
    tile = nearest(sites * 2, f.shape, int(TILE * f.unit) + 2, wide, turn)
    reach = int(8 * f.unit) + 2
    chip = 0.35 * f.unit * f.noise(4, 2)
    inner = distance(~borders(tile), reach) + chip - 1.1 * f.unit

    vary = rng.normal(0, 1, paint.shape) * [0.050, 0.014, 0.016]
    stone = (paint + vary).astype(np.float32)[tile]
    veins = f.noise(5, 2)
    stone[..., 0] += 0.014 * veins
    # Every tessera is set at its own slight tilt and catches the light differently.
    tilt = rng.normal(0, 0.16, (2, len(sites))).astype(np.float32)
    dx, dy = (g * f.shape[0] - 2 * sites[tile, i] for i, g in enumerate((f.x, f.y)))
    height = tilt[0][tile] * dx + tilt[1][tile] * dy + 0.08 * veins * f.unit
    height += 2.2 * f.unit * smooth(-0.4 * f.unit, 2.4 * f.unit, inner)
    grout = ramp("4a4238 6a6052 8a7f6c", 0.4 + 0.15 * f.noise(4, 2))
    cover = smooth(-0.6 * f.unit, 0.5 * f.unit, inner)
    shade = 0.55 + 0.45 * smooth(-1.5 * f.unit, 2 * f.unit, blur(inner, f.unit))
    surface = blend(grout, stone, cover)
    return finish(lit(to_linear(surface), height, 0.75, 0.10) * shade[..., None], 2)
