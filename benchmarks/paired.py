"""Measure how well `style_source` paints a frame like a painted photograph, the key.

    python benchmarks/paired.py [--ebsynth PROGRAM] [--artists ink,tint] [--pairs turned] \\
        [--pictures FOLDER]

Eight synthetic artists, functions that paint any picture by a fixed rule, paint a key photograph
and a frame. `style_source` paints the frame like the painted key; the artist's own frame is the
truth. The table has the root mean square error in grey levels of 255, after both pictures are
blurred by 0, 2 and 4 pixels, and the structure: the share of the truth's texture that the painted
frame has, at any place. For comparison, it has the same numbers of a picture of one colour, the
mean of the painted key.

`--ebsynth` is the program of Jamriska et al. 2019 (https://github.com/jamriska/ebsynth, built from
source), a rival with its default weights: the photographs are its guide, and in a second column
also the position of each pixel, which helps if little has moved. `--pictures` writes
a sheet for each artist: key, painted key, frame, truth, and each result.
"""

import argparse
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from benchmarks.measured import table
from styletransfer import stylize
from styletransfer.resources import resource

Array = NDArray[np.float64]
SIZE = (192, 144)  # (width, height) of every picture
BLURS = (0, 2, 4)  # standard deviations in pixels
# Texture is detail with more than COARSE cycles per pixel, in windows of WINDOW x WINDOW pixels.
WINDOW, COARSE = 32, 0.09


def blurred(picture: Array, deviation: float) -> Array:
    """Return a picture (H, W) or (H, W, C), blurred by a Gaussian; its border is repeated."""
    if not deviation:
        return picture
    reach = int(3 * deviation + 1)
    kernel = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * deviation**2))
    for axis in (0, 1):
        sides = [(reach, reach) if one == axis else (0, 0) for one in range(picture.ndim)]
        wide, length = np.pad(picture, sides, "edge"), picture.shape[axis]
        parts = (np.take(wide, range(n, n + length), axis) for n in range(len(kernel)))
        picture = sum(w * part for w, part in zip(kernel / kernel.sum(), parts, strict=True))
    return picture


def _light(picture: Array, deviation: float = 1.0) -> Array:
    """Return the blurred luma (grey values, H x W) of a picture (H, W, 3)."""
    return blurred(picture @ np.array([0.299, 0.587, 0.114]), deviation)


def _slope(light: Array) -> tuple[Array, Array, Array]:
    """Return the direction (x, y) and the size of the gradient, (H, W) each."""
    y, x = np.gradient(light)
    size = np.hypot(x, y)
    return x / (size + 1e-9), y / (size + 1e-9), size


def _grid(picture: Array) -> tuple[Array, Array]:
    y, x = np.mgrid[: picture.shape[0], : picture.shape[1]].astype(float)
    return x, y


def contours(picture: Array) -> Array:
    """Draw ink lines where the picture is darker than around it; fill deep shadows."""
    fine, wide = _light(picture, 0.8), _light(picture, 2.4)
    ink = np.clip((wide - fine - 0.012) * 60, 0, 1)
    ink = np.maximum(ink, np.clip((0.14 - wide) * 30, 0, 1))[..., None]
    return ink * [0.1, 0.08, 0.2] + (1 - ink) * [0.95, 0.92, 0.82]


def hatching(picture: Array) -> Array:
    """Hatch with a pencil, in up to three directions, more where the picture is darker."""
    light, (x, y) = _light(picture, 1.2), _grid(picture)
    page = np.ones_like(picture) * [0.97, 0.95, 0.9]
    for below, phase in ((0.7, x + y), (0.45, x - y), (0.22, 2 * x)):
        line = (np.mod(phase, 5) < 2) & (light < below)
        page[line] = page[line] * [0.45, 0.5, 0.65]
    return page


def flat(picture: Array) -> Array:
    """Paint in four flat colours, like a poster; the lightness chooses the colour."""
    light = _light(picture, 1.5)
    palette = np.array([[0.12, 0.1, 0.3], [0.75, 0.2, 0.25], [0.95, 0.6, 0.25], [0.98, 0.93, 0.75]])
    page: Array = palette[np.digitize(light, [0.22, 0.45, 0.68])]
    return page


def tints(picture: Array) -> Array:
    """Paint warm, cool and grey places in a tint each, as light or dark as the picture is there."""
    soft = blurred(picture, 2.0)
    warm = np.clip((soft[..., 0] - soft[..., 2] - 0.12) * 8, 0, 1)[..., None]
    cool = np.clip((soft[..., 2] - soft[..., 0] - 0.02) * 10, 0, 1)[..., None]
    tint = warm * [0.3, 0.85, 0.7] + cool * [0.95, 0.55, 0.75] + (1 - warm - cool) * [0.9, 0.9, 0.6]
    return np.clip(tint * (0.25 + 0.9 * _light(picture)[..., None]), 0, 1)


def strokes(picture: Array) -> Array:
    """Paint strokes along the contours, in colours stronger and warmer than the picture's."""
    x_slope, y_slope, _ = _slope(_light(picture, 3.0))
    noise = np.random.default_rng(5).random(picture.shape[:2])
    (x, y), total = _grid(picture), np.zeros(picture.shape[:2])
    for way in np.arange(-5, 6):
        at_x = np.clip(np.rint(x - way * y_slope), 0, SIZE[0] - 1).astype(int)
        at_y = np.clip(np.rint(y + way * x_slope), 0, SIZE[1] - 1).astype(int)
        total += noise[at_y, at_x]
    grain = (total - total.mean()) / total.std()
    bold = np.clip((blurred(picture, 1.5) - 0.5) * 1.35 + 0.5, 0, 1) ** [0.85, 1.0, 1.25]
    page: Array = np.clip(bold + 0.09 * grain[..., None], 0, 1)
    return page


def paper(picture: Array) -> Array:
    """Glue torn patches of paper: each has one of nine colours, and a dark upper edge."""
    height, width = picture.shape[:2]
    jitter = np.random.default_rng(2).random((height // 6 + 3, width // 6 + 3, 2)) * 6
    x, y = _grid(picture)
    best, owner = np.full((height, width), np.inf), np.zeros((height, width), int)
    colour = blurred(picture, 1.5)
    for row in range(jitter.shape[0]):
        for column in range(jitter.shape[1]):
            at = np.array([row, column]) * 6.0 - 6 + jitter[row, column]
            sides = zip(at, (height, width), strict=True)
            down, right = (int(np.clip(place, 0, side - 1)) for place, side in sides)
            apart = ((colour - colour[down, right]) ** 2).sum(-1) * 400
            distance = (y - at[0]) ** 2 + (x - at[1]) ** 2 + apart
            nearer = distance < best
            best[nearer], owner[nearer] = distance[nearer], row * jitter.shape[1] + column
    means = np.stack([np.bincount(owner.ravel(), colour[..., c].ravel()) for c in range(3)], -1)
    counts = np.bincount(owner.ravel()).astype(float)
    means = means / np.maximum(counts, 1)[:, None]
    hue = np.argmax(means - means.mean(-1, keepdims=True) + [0.0, 0.02, 0.02], -1)
    level = np.digitize(means.mean(-1), [0.25, 0.55])
    papers = np.array([[[0.35, 0.1, 0.15], [0.8, 0.3, 0.2], [0.98, 0.75, 0.5]],
                       [[0.1, 0.25, 0.2], [0.35, 0.55, 0.3], [0.85, 0.9, 0.6]],
                       [[0.1, 0.12, 0.3], [0.3, 0.4, 0.7], [0.85, 0.88, 0.95]]])  # fmt: skip
    page: Array = papers[hue, level][owner]
    edge = owner != np.roll(owner, 1, 0)
    page[edge] *= 0.7
    return page


def halftone(picture: Array) -> Array:
    """Print dots on a slanted grid, larger where the picture is darker."""
    (x, y), angle = _grid(picture), np.deg2rad(30)
    across = np.cos((x * np.cos(angle) + y * np.sin(angle)) * 2 * np.pi / 6)
    down = np.cos((y * np.cos(angle) - x * np.sin(angle)) * 2 * np.pi / 6)
    screen = (across + down) / 4 + 0.5
    ink = np.clip((screen - _light(picture, 1.5)) * 6 + 0.5, 0, 1)[..., None]
    page: Array = ink * [0.12, 0.1, 0.35] + (1 - ink) * [0.98, 0.94, 0.8]
    return page


def chalk(picture: Array) -> Array:
    """Draw chalk lines of varying length on dark paper, broader where the picture is lighter."""
    (x, y), (height, width) = _grid(picture), picture.shape[:2]
    noise = np.random.default_rng(7).random((height + width, height + width))
    long = np.mean([np.roll(noise, step, 0) for step in range(15)], 0)
    grain = ((long - long.mean()) / long.std())[(x + y).astype(int) // 2, (x - y).astype(int)]
    wave = 0.35 * np.sin((x + y) * 2 * np.pi / 9) + 0.18 * grain
    white = np.clip((_light(picture, 2.0) - 0.5 + wave) * 4 + 0.5, 0, 1)[..., None]
    page: Array = (1 - white) * [0.16, 0.2, 0.22] + white * (blurred(picture, 2.5) * 0.5 + 0.5)
    return page


ARTISTS = {
    artist.__name__: artist
    for artist in (contours, hatching, flat, tints, strokes, paper, halftone, chalk)
}


def photograph(name: str, box: tuple[float, float, float, float]) -> Array:
    """Return a part of a bundled photograph, (H, W, 3) in [0, 1]; `box` is from 0 to 1."""
    picture = Image.open(resource("assets") / "content" / f"{name}.jpg").convert("RGB")
    (width, height), (left, top, right, bottom) = picture.size, box
    cut = picture.crop((left * width, top * height, right * width, bottom * height))
    return np.asarray(cut.resize(SIZE, Image.Resampling.LANCZOS), float) / 255


def moved(
    picture: Array,
    turn: float = 0,
    scale: float = 1,
    shift: tuple[float, float] = (0, 0),
    wave: float = 0,
) -> Array:
    """Turn (degrees), enlarge, shift and distort (pixels) a picture; mirror it at its borders."""
    height, width = picture.shape[:2]
    x, y = _grid(picture)
    x, y = x + wave * np.sin(y / 17), y + wave * np.cos(x / 23)
    x, y = x - width / 2 - shift[0], y - height / 2 - shift[1]
    angle = np.deg2rad(turn)
    x, y = x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)
    x, y = x / scale + width / 2, y / scale + height / 2
    x, y = _mirrored(x, width), _mirrored(y, height)
    left = np.clip(np.floor(x), 0, width - 2).astype(int)
    top = np.clip(np.floor(y), 0, height - 2).astype(int)
    x, y = (x - left)[..., None], (y - top)[..., None]
    upper = picture[top, left] * (1 - x) + picture[top, left + 1] * x
    lower = picture[top + 1, left] * (1 - x) + picture[top + 1, left + 1] * x
    made: Array = upper * (1 - y) + lower * y
    return made


def _mirrored(places: Array, side: int) -> Array:
    """Reflect `places` (x or y in pixels) that are below 0 or above side - 1 into this range."""
    repeated: Array = np.mod(np.abs(places), 2 * side - 2)
    return side - 1 - np.abs(side - 1 - repeated)


def _pairs() -> dict[str, tuple[Array, Array]]:
    """Return the pairs of photographs: name -> (key, frame)."""
    face = photograph("astronaut", (0.1, 0.0, 0.74, 0.48))
    cat = photograph("chelsea", (0.05, 0.0, 0.95, 1.0))
    cup = photograph("coffee", (0.05, 0.0, 0.95, 1.0))
    rocket = photograph("rocket", (0.2, 0.25, 0.85, 1.0))
    x, _ = _grid(cup)
    lamp = (0.6 + 0.55 * x / SIZE[0])[..., None] * [1.0, 0.96, 0.9]
    other = moved(cat[:, ::-1], turn=-5, scale=1.15, wave=4) ** [1.15, 1.0, 0.9]
    return {
        "small": (face, moved(face, turn=2, shift=(3, -2))),
        "large": (face, moved(face, turn=11, scale=0.85, shift=(-9, 6))),
        "turned": (cat, moved(cat, turn=-12, scale=1.2, shift=(8, 5))),
        "light": (cup, np.clip(moved(cup, turn=1, shift=(-3, 2)) * lamp, 0, 1)),
        "waves": (rocket, moved(rocket, scale=1.1, shift=(6, -4), wave=4)),
        "other": (cat, other),
    }


def error(picture: Array, truth: Array, deviation: float) -> float:
    """Return the root mean square difference of two blurred pictures in grey levels of 255."""
    difference = blurred(picture, deviation) - blurred(truth, deviation)
    return 255 * float(np.sqrt((difference**2).mean()))


def structure(picture: Array, truth: Array) -> float:
    """Return the share of the truth's texture, from 0 to 1, that a picture has.

    The share compares the power spectra of both pictures' lumas in windows. At each frequency it
    takes the smaller of the two powers; their sum is divided by the sum of the truth's powers. A
    texture that is moved keeps its spectrum; one that is blurred, or is the mean of moved copies,
    loses its peaks. The share of two samples of the same noise is about 0.5.
    """
    frequencies, window = np.fft.fftfreq(WINDOW), np.hanning(WINDOW + 2)[1:-1]
    fine = np.hypot(frequencies[:, None], frequencies) > COARSE
    powers = []
    for each in (picture, truth):
        parts = np.lib.stride_tricks.sliding_window_view(_light(each, 0), (WINDOW, WINDOW))
        parts = parts[:: WINDOW // 2, :: WINDOW // 2]
        parts = (parts - parts.mean((2, 3), keepdims=True)) * window * window[:, None]
        powers.append(np.abs(np.fft.fft2(parts))[..., fine] ** 2)
    return float(np.minimum(*powers).sum() / powers[1].sum())


def as_image(picture: Array) -> Image.Image:
    """Return a picture (H, W, 3) in [0, 1] as a Pillow image of 8 bits per channel."""
    return Image.fromarray(np.rint(picture * 255).clip(0, 255).astype(np.uint8))


def painted_after(key: Array, painted: Array, frame: Array) -> Array:
    """Return the frame, painted by `stylize` like the painted key."""
    images = [as_image(each) for each in (frame, painted, key)]
    result = stylize(*images[:2], style_source=images[2], size=max(SIZE), precision="float32")
    return np.asarray(result.numpy()[..., :3], float)


def painted_by_ebsynth(
    program: Path, key: Array, painted: Array, frame: Array, by_place: bool = False
) -> Array:
    """Return the frame, painted by EbSynth; with `by_place`, pixel positions are a second guide."""
    x, y = _grid(key)
    place = np.stack([x / SIZE[0], y / SIZE[1], np.zeros_like(x)], -1)
    pictures = {"key": key, "painted": painted, "frame": frame, "place": place}
    with TemporaryDirectory() as folder:
        for name, picture in pictures.items():
            as_image(picture).save(f"{folder}/{name}.png")
        words = ["-style", "painted.png", "-guide", "key.png", "frame.png", "-output", "made.png"]
        words += ["-guide", "place.png", "place.png"] if by_place else []
        command = [str(program.resolve()), *words, "-backend", "cpu"]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        with Image.open(f"{folder}/made.png") as made:
            return np.asarray(made.convert("RGB"), float) / 255


def one_colour(key: Array, painted: Array, frame: Array) -> Array:
    """Return a picture of one colour, the mean of the painted key, in the size of the frame."""
    return np.broadcast_to(painted.mean((0, 1)), frame.shape)


Painter = Callable[[Array, Array, Array], Array]


def compare(
    artists: list[str], pairs: list[str], painters: list[Painter], folder: Path | None = None
) -> list[list[str]]:
    """Return a row per artist and pair, with each painter's errors and structure; and the means."""
    pictures, rows, numbers = _pairs(), [], []
    for name in artists:
        artist, sheet = ARTISTS[name], []
        for pair in pairs:
            key, frame = pictures[pair]
            painted, truth = artist(key), artist(frame)
            made = [painter(key, painted, frame) for painter in painters]
            errors = [[error(one, truth, blur) for blur in BLURS] for one in made]
            shares = [structure(one, truth) for one in made]
            numbers.append([[*own, share] for own, share in zip(errors, shares, strict=True)])
            rows.append([name, pair, *_written(numbers[-1])])
            sheet.append(np.hstack([key, painted, frame, truth, *made]))
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            as_image(np.vstack(sheet)).save(folder / f"{name}.png")
    means = np.mean(numbers, 0)
    return [*rows, ["mean", "", *_written(means.tolist())]]


def _written(numbers: list[list[float]]) -> list[str]:
    """Return the cells of a row as text: for each painter its errors and its structure."""
    return [
        cell for *own, share in numbers for cell in (*(f"{e:.1f}" for e in own), f"{share:.2f}")
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--artists", default=",".join(ARTISTS))
    parser.add_argument("--pairs", default=",".join(_pairs()))
    parser.add_argument("--ebsynth", type=Path)
    parser.add_argument("--pictures", type=Path)
    asked = parser.parse_args()
    painters: dict[str, Painter] = {"colour": one_colour, "paired": painted_after}
    if asked.ebsynth is not None:
        rival = partial(painted_by_ebsynth, asked.ebsynth)
        painters |= {"EbSynth": rival, "and place": partial(rival, by_place=True)}
    artists, pairs = asked.artists.split(","), asked.pairs.split(",")
    rows = compare(artists, pairs, [*painters.values()], asked.pictures)
    titles = [f"{name} {what}" for name in painters for what in (*BLURS, "structure")]
    print(table(["artist", "pair", *titles], rows, left=(0, 1)))


if __name__ == "__main__":
    main()
