"""Paintings without end, for networks that are to paint in styles they have never seen.

Each seed is a picture of its own: a scene, a palette, a way to paint. Scenes are crops of the
bundled photographs and paintings, or noise; palettes are drawn anew, so that none is a copy.

    python -m tools.painters.endless FOLDER --count 3000
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from styletransfer.resources import resource
from styletransfer.system.files import atomic
from tools.painters.canvas import Array, Frame, Rng, blur, borders, frame, nearest, smooth
from tools.painters.colour import finish, lab, lit, to_linear
from tools.painters.strokes import Surface, lay, tinted, trace

QUALITY = 90
SIZE = 512


def scene(f: Frame) -> Array:
    """Return the OKLab colours of what is painted: a crop of a bundled picture, or noise."""
    rng, kind = f.rng, f.rng.random()
    if kind < 0.35:
        scale = rng.uniform(15, 160)
        stretch = (scale, scale * rng.choice([1, 1, 2, 4]))
        fields = [f.noise(stretch, rng.uniform(1.5, 4)) for _ in range(3)]
        if rng.random() < 0.5:  # bands, as of hills, waves and cloth
            fields[0] = np.sin(fields[0] * rng.uniform(1, 6) + f.y * rng.uniform(-20, 20))
        light = 0.6 + 0.18 * fields[0]
        return np.stack([light, 0.05 * fields[1], 0.05 * fields[2]], -1)
    folder = "content" if kind < 0.65 else "style"
    files = sorted((resource("assets") / folder).glob("*.jpg"))
    with Image.open(files[rng.integers(len(files))]) as picture:
        part = min(1.0, rng.uniform(0.35, 1.2))
        height = min(picture.height, picture.width / f.aspect) * part
        box_size = np.array([height * f.aspect, height])
        x, y = rng.random(2) * (np.array(picture.size) - box_size)
        box = (x, y, x + box_size[0], y + box_size[1])
        rgb = picture.convert("RGB").resize(f.shape[::-1], Image.Resampling.LANCZOS, box)
    values = np.asarray(rgb, np.float32) / 255
    values = values[:, ::-1] if rng.random() < 0.5 else values
    return lab(np.where(values > 0.04045, ((values + 0.055) / 1.055) ** 2.4, values / 12.92))


def recoloured(colour: Array, rng: Rng) -> Array:
    """Return the scene in another palette: turned and stretched, or along a row of new colours."""
    light = colour[..., 0]
    if rng.random() < 0.15:
        light = 1.1 - light
    low, high = np.quantile(light, [0.02, 0.98])
    position = np.clip((light - low) / (high - low + 1e-6), 0, 1)
    dark, bright = rng.uniform(0.08, 0.5), rng.uniform(0.65, 0.98)
    tone = dark + (bright - dark) * position ** np.exp(rng.normal(0, 0.35))
    if rng.random() < 0.5:
        count = int(rng.integers(3, 7))
        hue = rng.uniform(0, 2 * np.pi) + rng.normal(0, rng.choice([0.3, 1.0, 2.5]), count)
        chroma = rng.uniform(0, rng.choice([0.04, 0.1, 0.17]), count)
        stops = np.stack([chroma * np.cos(hue), chroma * np.sin(hue)], -1)
        # Places as light as others take another colour where their old one was another.
        leaning = 0.075 * colour[..., 1] / (colour[..., 1].std() + 0.02)
        spot = np.clip(position + leaning, 0, 1) * (count - 1)
        first = np.minimum(spot.astype(int), count - 2)
        share = (spot - first)[..., None]
        chromatic = stops[first] * (1 - share) + stops[first + 1] * share
    else:
        turn, gain = rng.uniform(0, 2 * np.pi), rng.uniform(0.3, 2.0)
        c, s = np.cos(turn), np.sin(turn)
        chromatic = colour[..., 1:] @ np.array([[c, s], [-s, c]]) * gain
        chromatic = chromatic + rng.normal(0, 0.03, 2)
    return np.concatenate([tone[..., None], chromatic], -1).astype(np.float32)


def directions(f: Frame, colour: Array) -> Array:
    """Return the angles that strokes follow: along edges, along a wind, or all one way."""
    rng, way = f.rng, f.rng.uniform(0, np.pi)
    if rng.random() < 0.25:
        return np.full(f.shape, way, np.float32) + rng.uniform(0.05, 0.6) * f.noise(60)
    field = blur(colour[..., 0], 4 * f.unit)
    if rng.random() < 0.4:
        field = f.noise(rng.uniform(60, 200)) * 0.1
    gy, gx = np.gradient(field)
    cross = rng.choice([0, 0, 0, np.pi / 2])
    return (np.arctan2(-gx, gy) + cross + 0.15 * f.noise(40)).astype(np.float32)


def strokes(f: Frame, colour: Array) -> Array:
    """Brush strokes in layers, from broad to fine, from dots to long curves."""
    rng, angle = f.rng, directions(f, colour)
    ground = np.broadcast_to(colour.mean((0, 1)) * [rng.uniform(0.5, 1.3), 1, 1], colour.shape)
    surface = Surface(np.array(ground, np.float32), f.noise(2) * 0.1)
    widest, count = np.exp(rng.uniform(np.log(7), np.log(45))), int(rng.integers(1, 5))
    long, tint = np.exp(rng.uniform(np.log(1.1), np.log(11))), rng.uniform(0, 0.07)
    cover, load = rng.uniform(0.5, 1.0), rng.uniform(0, 1.6)
    for layer in range(count):
        wide = max(widest * 0.55**layer, 2.5)
        starts = f.scatter(max(3.0, wide * cover * (1 + 0.25 * layer)))
        vary = rng.uniform(0.65, 1.35, (2, len(starts))).astype(np.float32)
        paint = tinted(rng, f.at(colour, starts), tint, tint * rng.uniform(0.2, 1))
        length = np.minimum(wide * long, 160) * f.unit * vary[0]
        paths = trace(f, angle, starts, length, knots=8)
        width, dry = wide * f.unit * vary[1], rng.uniform(0.1, 0.6)
        hair, blunt = rng.uniform(1.2, 3) * f.unit, rng.uniform(2, 6)
        lay(surface, paths, width, paint, rng, load=load, dry=dry, blunt=blunt, hair=hair)
    relief = rng.uniform(0.2, 1.4) * f.unit
    return lit(to_linear(surface.colour), surface.height, relief, 0.04)


def pieces(f: Frame, colour: Array) -> Array:
    """Pieces of one colour each, with joints: mosaics, windows, patchwork."""
    rng = f.rng
    wide = np.exp(rng.uniform(np.log(8), np.log(60)))
    sites = f.scatter(wide)
    angle = f.at(directions(f, colour), sites) if rng.random() < 0.6 else None
    label = nearest(sites, f.shape, max(2, round(1.3 * wide * f.unit)), None, angle)
    paint = tinted(rng, f.at(colour, sites), rng.uniform(0, 0.06), rng.uniform(0, 0.03))[label]
    joint = blur(borders(label).astype(np.float32), rng.uniform(0.4, 0.06 * wide + 0.5) * f.unit)
    joint = smooth(0.1, 0.35, joint)[..., None] * rng.choice([0, 0.6, 1, 1])
    grout = np.array([rng.choice([0.1, 0.2, 0.85]), 0, 0], np.float32)
    made = paint + (grout - paint) * joint
    made[..., 0] += rng.uniform(0, 0.05) * f.noise(rng.uniform(2, 9))
    return lit(to_linear(made), -joint[..., 0] * f.unit, rng.uniform(0, 1.5), 0.05)


def lines(f: Frame, colour: Array) -> Array:
    """Lines whose width is the tone: engravings, woodcuts, hatchings, in two inks or in colours."""
    rng, light = f.rng, blur(colour[..., 0], softness(f))
    tone = (light - light.min()) / (np.ptp(light) + 1e-6)
    ink = np.zeros(f.shape, np.float32)
    for _ in range(int(rng.integers(1, 3))):
        way, rate = rng.uniform(0, np.pi), 2 * np.pi / rng.uniform(0.006, 0.03)
        across = f.x * np.cos(way) + f.y * np.sin(way)
        bend = rng.uniform(0, 0.03) * f.noise(80) + rng.uniform(0, 0.06) * light
        wave = np.sin(rate * (across + bend) + rng.uniform(0, 0.8) * f.noise(8))
        ink = np.maximum(ink, smooth(-0.25, 0.25, wave * 0.5 + 0.5 - tone * rng.uniform(0.9, 1.3)))
    paper = np.array([rng.uniform(0.8, 0.97), *rng.normal(0, 0.02, 2)], np.float32)
    if rng.random() < 0.5:
        paper = colour * [0.5, 1, 1] + [0.5, 0, 0]
    dark = np.array([rng.uniform(0.05, 0.4), *rng.normal(0, 0.05, 2)], np.float32)
    return to_linear(paper + (dark - paper) * ink[..., None])


def softness(f: Frame) -> float:
    """Return a radius in pixels by which a scene is simplified."""
    return float(f.rng.uniform(0.8, 5) * f.unit)


def planes(f: Frame, colour: Array) -> Array:
    """Flat planes of few tones, with outlines or without: posters, cut paper, prints."""
    rng, radius = f.rng, softness(f)
    soft = np.stack([blur(np.ascontiguousarray(colour[..., i]), radius) for i in range(3)], -1)
    count = int(rng.integers(3, 8))
    step = np.floor(soft[..., 0] * count + rng.uniform(0, 1) * 0.2 * f.noise(30)).astype(int)
    flat = np.array(soft)
    for value in np.unique(step):
        flat[step == value] = soft[step == value].mean(0)
    mixed = flat + (soft - flat) * rng.choice([0, 0.3, 0.7])
    edge = blur(borders(step.astype(np.int64)).astype(np.float32), rng.uniform(0.4, 2) * f.unit)
    outline = smooth(0.08, 0.3, edge)[..., None] * rng.choice([0, 0.5, 1])
    made = mixed * (1 - outline) + outline * [rng.choice([0.08, 0.15, 0.9]), 0, 0]
    made[..., 0] += rng.uniform(0, 0.06) * f.noise(rng.uniform(1.5, 6))
    return to_linear(made.astype(np.float32))


def washes(f: Frame, colour: Array) -> Array:
    """Thin paint that pools and grains on paper, or soft pastel and chalk."""
    rng, radius = f.rng, softness(f)
    soft = np.stack([blur(np.ascontiguousarray(colour[..., i]), radius) for i in range(3)], -1)
    pool = soft[..., 0] - blur(np.ascontiguousarray(soft[..., 0]), 3 * radius)
    tooth = f.noise((rng.uniform(1, 4), rng.uniform(1, 4)), rng.uniform(1.5, 3))
    soft[..., 0] += rng.uniform(-1.5, 1.5) * pool + rng.uniform(0.01, 0.09) * tooth
    soft[..., 0] += rng.uniform(0, 0.06) * f.noise(rng.uniform(15, 50), 2)
    return to_linear(soft.astype(np.float32))


WAYS: tuple[tuple[Callable[[Frame, Array], Array], float], ...] = (
    (strokes, 0.48), (pieces, 0.12), (lines, 0.12), (planes, 0.14), (washes, 0.14),
)  # fmt: skip


def painting(seed: int, size: int = SIZE) -> Image.Image:
    """Return one painting, `size` pixels on its longer side; a seed gives the same pixels."""
    rng = np.random.default_rng(seed)
    f = frame(size, float(rng.choice([0.75, 0.8, 1, 1.25, 1.33])), rng)
    colour = recoloured(scene(f), rng)
    ways, shares = zip(*WAYS, strict=True)
    light = ways[rng.choice(len(ways), p=shares)](f, colour)
    picture = finish(np.maximum(light, 0), 1)
    return Image.fromarray((picture * 255 + 0.5).astype(np.uint8))


def main() -> None:
    """Paint the pictures of seeds START up into a folder; those that are there stay."""
    parser = argparse.ArgumentParser(description="Paint paintings without end.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--start", type=int, default=0)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for seed in range(options.start, options.start + options.count):
        path = options.folder / f"{seed:06d}.jpg"
        if not path.exists():
            with atomic(path) as draft:
                painting(seed).save(draft, "JPEG", quality=QUALITY)


if __name__ == "__main__":
    main()
