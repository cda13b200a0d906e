"""Measure the faint lattice that style networks paint: `python benchmarks/lattice.py`.

A network may paint a pattern that repeats every 4 pixels. The script paints seven pictures at
512 pixels, the four bundled photographs and three synthetic ones, by each network that ships or by
those that are named: `python benchmarks/lattice.py oil FILE`. A network with several styles takes
them in turn. In each pastiche, the script averages the power spectra of the squares of 64 x 64
pixels in which the picture varies least. It prints the largest peak at a multiple of 1/4 cycles per
pixel, divided by the median around it, with the network's filter (`networks.lattice`) and without.
"""

import sys
from pathlib import Path

import torch
from torch import Tensor, fft, nn
from torch.nn.functional import unfold

from benchmarks.measured import table
from styletransfer.networks.apply.painter import Painter
from styletransfer.networks.commands.apply import ApplyConfig
from styletransfer.networks.file import network_file, read, shipped
from styletransfer.networks.lattice import PERIOD
from styletransfer.pictures import images
from styletransfer.settings import ASSETS

SIZE, SIDE = 512, 64  # longer side of a picture, side of a square, in pixels
FLAT = 0.2  # share of the squares that are measured, those in which the picture varies least
NOISE = 0.004  # standard deviation of the noise of the synthetic pictures, one level of 255
# In frequency bins: the peak is the largest power up to PEAK bins from a multiple of 1/4 cycles per
# pixel. The median is over the bins more than INNER and at most OUTER rows or columns away.
PEAK, OUTER, INNER = 1, 6, 2


def pictures() -> dict[str, Tensor]:
    """Return the seven pictures to paint: name -> picture (1, 3, h, w)."""
    found = {}
    for path in sorted((ASSETS / "content").glob("*.jpg")):
        found[path.stem] = images.resize_picture(images.read(path), SIZE).rgb
    generator = torch.Generator().manual_seed(0)
    down, right = torch.meshgrid(torch.arange(384) / 384, torch.arange(SIZE) / SIZE, indexing="ij")
    made = {
        "sky": (0.3 + 0.5 * down, 0.5 + 0.3 * down, 0.8 + 0.1 * down),
        "ramp": (right, 0.2 + 0.5 * right, 1 - 0.6 * right),
        "wall": (torch.full_like(down, 0.6),) * 3,
    }
    for name, channels in made.items():
        plain = torch.stack(channels)[None]
        noise = NOISE * torch.randn(plain.shape, generator=generator)
        found[name] = (plain + noise).clamp(0, 1)
    return found


def squares(image: Tensor) -> Tensor:
    """Divide the grey values of an image (1, 3, h, w) into squares (n, SIDE, SIDE)."""
    grey = image.mean(1, keepdim=True)
    return unfold(grey, SIDE, stride=SIDE)[0].T.reshape(-1, SIDE, SIDE)


def peak(picture: Tensor, pastiche: Tensor) -> float:
    """Return the largest peak of the lattice, divided by the median of the power around it."""
    calm = squares(picture).std((1, 2)).argsort()
    painted = squares(pastiche)[calm[: max(3, int(FLAT * len(calm)))]]
    window = torch.hann_window(SIDE)[:, None] * torch.hann_window(SIDE)
    painted = window * (painted - painted.mean((1, 2), keepdim=True))
    power = fft.fft2(painted).abs().square().mean(0)
    largest, places = 0.0, range(0, SIDE, SIDE // PERIOD)
    for row, column in ((row, column) for row in places for column in places if row or column):
        near = power.roll((OUTER - row, OUTER - column), (0, 1))[: 2 * OUTER + 1, : 2 * OUTER + 1]
        inner = slice(OUTER - INNER, OUTER + INNER + 1)
        around = torch.ones_like(near, dtype=torch.bool)
        around[inner, inner] = False
        middle = slice(OUTER - PEAK, OUTER + PEAK + 1)
        largest = max(largest, float(near[middle, middle].max() / near[around].median()))
    return largest


def rows(network: str) -> list[list[str]]:
    """Return a row for each picture: network, picture, style, peaks with and without the filter."""
    file = read(network_file(network))
    styles = sorted(map(str, (ASSETS / "style").glob("*.jpg"))) if file.network.encoder else None
    made = []
    for number, (name, picture) in enumerate(pictures().items()):
        style = (styles or file.styles)[number % len(styles or file.styles)]
        painter = Painter(ApplyConfig(network=network, style=style, precision="float32"))
        filtered = peak(picture, painter.paint(picture))
        colors = painter.network.segments[-1].last
        assert isinstance(colors, nn.Sequential)
        colors[1] = nn.Identity()
        plain = peak(picture, painter.paint(picture))
        made.append([network, name, Path(style).stem, f"{filtered:.0f}", f"{plain:.0f}"])
        print(*made[-1], file=sys.stderr)
    return made


if __name__ == "__main__":
    print(
        table(
            ["network", "picture", "style", "peak / median", "without the filter"],
            [row for network in sys.argv[1:] or shipped() for row in rows(network)],
        )
    )
