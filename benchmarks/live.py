"""Measure how well a network that has learnt one painted frame paints other frames of the film.

    python benchmarks/live.py live
    python scripts/train_network.py style_source=live/film.mp4:12 style=live/comic/012.png \\
        pictures=live/film.mp4 network=tiny steps=500 learning_rate=6e-3 hydra.run.dir=live/run
    python scripts/apply.py network=live/run/network.safetensors input=live/frames output=live/made
    python benchmarks/live.py live --measure made

The film is that of `clip.py`. Synthetic artists paint all of its frames: `comic` draws contours
over flat colours, `brush` is the program of `hand.py`. The network learns from the even frames of 0
to 31, which `style_source` paints like frame 12. The odd ones, and frames 32 to 47, are new to the
network. The table has the root mean square difference in grey levels from the artist's own frames,
after both are blurred by 0, 2 and 4 pixels; the power of detail finer than 1 / CRISP pixels,
divided by the artist's; and the flicker of all frames.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from benchmarks import clip
from benchmarks.flicker import measure, report
from benchmarks.hand import SIZE, painted
from benchmarks.measured import table
from benchmarks.paired import BLURS, Array, as_image, contours, error, flat
from styletransfer.films.read import Film

COUNT, LEARNT = 48, 32  # number of all frames; number of frames in the film for training
CRISP = 0.15  # frequency in cycles per pixel above which detail counts as fine


def comic(picture: Array) -> Array:
    """Draw contours over flat colours."""
    lines = contours(picture)
    page: Array = np.where(lines.mean(-1, keepdims=True) < 0.5, lines, flat(picture))
    return page


ARTISTS = {"comic": comic, "brush": painted}


def make(folder: Path) -> None:
    """Write the film, its frames, and the frames as each artist paints them."""
    for name in ("frames", *ARTISTS):
        (folder / name).mkdir(parents=True, exist_ok=True)
    frames = clip.clip(COUNT, SIZE[::-1])
    clip.write(folder / "film.mp4", frames[:LEARNT])
    clip.write(folder / "all.mp4", frames)
    with Film(folder / "all.mp4") as film:
        for number, frame in enumerate(film.frames()):
            picture = frame.image[0].permute(1, 2, 0).double().numpy()
            as_image(picture).save(folder / "frames" / f"{number:03d}.png")
            for name, artist in ARTISTS.items():
                as_image(artist(picture)).save(folder / name / f"{number:03d}.png")


def pictures(folder: Path) -> list[Array]:
    """Return the pictures (H, W, 3) in [0, 1] of a folder, in the order of their names."""
    files = sorted(folder.glob("*.png"))
    return [np.asarray(Image.open(one).convert("RGB"), float) / 255 for one in files]


def compared(truth: list[Array], made: list[Array], numbers: range) -> list[str]:
    """Return the mean error after each blur of BLURS, and the mean ratio of fine power."""
    pairs = [(made[number], truth[number]) for number in numbers]
    errors = " / ".join(f"{np.mean([error(*one, blur) for one in pairs]):.1f}" for blur in BLURS)
    power = np.mean([fine_power(one) / fine_power(other) for one, other in pairs])
    return [errors, f"{power:.2f}"]


def fine_power(picture: Array) -> float:
    """Return the power at frequencies above CRISP cycles per pixel, summed over channels."""
    down, across = (np.fft.fftfreq(side) for side in picture.shape[:2])
    fine = np.hypot(down[:, None], across[None]) > CRISP
    return float((np.abs(np.fft.fft2(picture, axes=(0, 1))[fine]) ** 2).sum())


def as_tensor(picture: Array) -> Tensor:
    """Return a picture (H, W, 3) as a tensor (1, 3, H, W)."""
    return torch.from_numpy(picture).permute(2, 0, 1)[None].float()


def main() -> None:
    """Make the film; or, with --measure, print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--artist", default="comic", choices=list(ARTISTS))
    parser.add_argument("--measure", nargs="+", help="folders of 48 painted frames")
    asked = parser.parse_args()
    if not asked.measure:
        make(asked.folder)
        return
    films = {name: pictures(asked.folder / name) for name in ("frames", *asked.measure)}
    truth = pictures(asked.folder / asked.artist)
    between, after = range(1, LEARNT, 2), range(LEARNT, COUNT)
    rows = [
        [name, *compared(truth, film, between), *compared(truth, film, after)]
        for name, film in films.items()
    ]
    titles = ["film", "frames between", "power", "frames after", "power"]
    print(table(titles, rows))
    films[asked.artist] = truth
    print(report(measure({name: map(as_tensor, film) for name, film in films.items()})))


if __name__ == "__main__":
    main()
