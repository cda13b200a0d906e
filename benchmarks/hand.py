"""Make the pictures of the README's row "your own hand": a film in the style of a painted frame.

    python benchmarks/hand.py hand
    python scripts/film.py content=hand/frames style=hand/painted.png \
        style_source=hand/frames/00.png size=256 output=hand/painted.mp4 hydra.run.dir=hand/run
    python benchmarks/hand.py hand --row docs/hand.jpg

A camera turns and comes nearer to a bundled photograph. Its first frame is painted by a program
that lays brush strokes, broad ones first, then fine ones where the picture has detail (Hertzmann
1998). scripts/film.py paints the other frames like this one.
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from benchmarks.paired import Array, as_image, blurred, moved
from styletransfer.resources import resource

SIZE, COUNT = (256, 192), 13  # (width, height) in pixels; number of frames
SHOWN = (4, 8, 12)  # numbers of the frames that the row shows after the first frame
# Strokes are drawn at DRAWN times the size, then the picture is reduced. BRUSHES: radius of the
# brush in pixels -> smallest difference from the photograph's colour at which a stroke is laid.
DRAWN, BRUSHES = 4, {9.0: 0.0, 4.5: 0.06, 2.2: 0.07, 1.1: 0.1}


def filmed() -> list[Array]:
    """Return the frames of the film, (H, W, 3) each, in [0, 1]."""
    photo = Image.open(resource("assets") / "content" / "chelsea.jpg").convert("RGB")
    scene = np.asarray(photo.resize(SIZE, Image.Resampling.LANCZOS), float) / 255
    times = np.arange(COUNT) / (COUNT - 1)
    return [moved(scene, turn=-9 * t, scale=1 + 0.2 * t, shift=(10 * t, 6 * t)) for t in times]


def painted(picture: Array) -> Array:
    """Return a picture (H, W, 3) in [0, 1], painted with brush strokes."""
    generator, (width, height) = np.random.default_rng(3), SIZE
    page = Image.new("RGB", (width * DRAWN, height * DRAWN), (196, 164, 126))
    for radius, least in BRUSHES.items():
        colors = blurred(picture, radius / 2)
        vivid = np.clip((colors - colors.mean((0, 1))) * 1.35 + colors.mean((0, 1)), 0, 1)
        down, across = map(np.asarray, np.gradient(blurred(picture, radius).mean(-1)))
        now = np.asarray(page.resize(SIZE, Image.Resampling.BOX), float) / 255
        missing = np.abs(blurred(now, radius / 2) - vivid).mean(-1)
        places = np.argwhere(np.ones((int(height / radius), int(width / radius)))) + 0.5
        places = places * radius + generator.normal(0, radius / 2, places.shape)
        brush = ImageDraw.Draw(page)
        for y, x in generator.permutation(places):
            at = int(np.clip(y, 0, height - 1)), int(np.clip(x, 0, width - 1))
            if missing[at] < least:
                continue
            tone = vivid[at] + generator.normal(0, 0.02) + generator.normal(0, 0.012, 3)
            _stroke(brush, (x, y), (down, across), radius, tone)
    return np.asarray(page.resize(SIZE, Image.Resampling.LANCZOS), float) / 255


def _stroke(
    brush: ImageDraw.ImageDraw,
    place: tuple[float, float],
    slope: tuple[Array, Array],
    radius: float,
    tone: Array,
) -> None:
    """Draw a stroke along the contours from `place` (x, y), with bristles of different tones."""
    (x, y), (down, across), points = place, slope, []
    heading = np.zeros(2)
    for _ in range(7):
        points.append((x, y))
        at = int(np.clip(y, 0, SIZE[1] - 1)), int(np.clip(x, 0, SIZE[0] - 1))
        step = np.array([-down[at], across[at]]) + 1e-4
        step *= 1 if step @ heading >= 0 else -1
        heading = step / np.hypot(*step) + 0.4 * heading
        heading /= np.hypot(*heading)
        x, y = x + radius * heading[0] * 0.9, y + radius * heading[1] * 0.9
    side = np.array([-heading[1], heading[0]])
    for bristle in np.linspace(-0.7, 0.7, 7):
        shade = tone + 0.05 * np.sin(37 * bristle + 9 * points[0][0])
        color = tuple(int(value) for value in np.clip(shade * 255, 0, 255))
        path = [tuple((np.array(point) + side * bristle * radius) * DRAWN) for point in points]
        brush.line(path, fill=color, width=max(1, round(radius * DRAWN * 0.45)), joint="curve")


def row(folder: Path) -> Image.Image:
    """Return the first frame, its painting, and the painted frames SHOWN, side by side."""
    frames = [folder / "run" / "frames" / f"{number:06d}.png" for number in SHOWN]
    pictures = [folder / "frames" / "00.png", folder / "painted.png", *frames]
    page = Image.new("RGB", (len(pictures) * (SIZE[0] + 4) - 4, SIZE[1]), "white")
    for number, path in enumerate(pictures):
        page.paste(Image.open(path).convert("RGB"), (number * (SIZE[0] + 4), 0))
    return page


def main() -> None:
    """Write the film's frames and the painted first frame; or, with --row, the README's row."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--row", type=Path)
    asked = parser.parse_args()
    if asked.row is not None:
        row(asked.folder).save(asked.row, quality=90)
        return
    (asked.folder / "frames").mkdir(parents=True, exist_ok=True)
    frames = filmed()
    for number, frame in enumerate(frames):
        as_image(frame).save(asked.folder / "frames" / f"{number:02d}.png")
    as_image(painted(frames[0])).save(asked.folder / "painted.png")


if __name__ == "__main__":
    main()
