"""Measure the halos that style networks paint around figures: `python benchmarks/halo.py`.

A halo is a band along the edge of a figure in which the calm ground behind it becomes lighter or
darker than elsewhere. The script paints three figures, a tower, a disc and a hill, each dark on a
light ground and light on a dark one, 256 x 256 pixels, by each network that ships or by those that
are named: `python benchmarks/halo.py any FILE`. A network for any style takes the bundled pictures
in turn.

Six bands lie around a figure, at 2 to 26 pixels from it, each 4 pixels wide. The halo of a pastiche
is the largest difference, in levels of 255, between the mean luma of a band and that of the ground
28 to 60 pixels away. The script prints the mean and the maximum of the halo over the styles. `any`
was trained on figures of the same kinds, at the same distances.
"""

import sys

import torch
from torch import Tensor
from torch.nn.functional import max_pool2d

from benchmarks.measured import table
from styletransfer.networks.apply.painter import Painter
from styletransfer.networks.commands.apply import ApplyConfig
from styletransfer.networks.file import network_file, read, shipped
from styletransfer.pictures.images import luma
from styletransfer.settings import ASSETS

SIDE = 256  # height and width of a picture in pixels
# In pixels: the bands begin at FIRST from the figure, are WIDE each and end at LAST; the ground
# with which they are compared is between FAR and FARTHEST away.
FIRST, WIDE, LAST, FAR, FARTHEST = 2, 4, 26, 28, 60
# Colours of a light ground, a dark figure, a dark ground, a light figure; sRGB in [0, 1].
COLORS = (((0.62, 0.72, 0.82), (0.12, 0.11, 0.1)), ((0.15, 0.17, 0.28), (0.85, 0.8, 0.7)))
NOISE = 0.01  # standard deviation of the noise in the pictures


def figures() -> dict[str, Tensor]:
    """Return the three figures: name -> mask (1, 1, SIDE, SIDE), 1 in the figure and 0 outside."""
    y, x = torch.meshgrid(*2 * [torch.arange(SIDE) / SIDE], indexing="ij")
    masks = {
        "tower": (y > 0.25) & (x > 0.375) & (x < 0.625),
        "disc": (y - 0.5).square() + (x - 0.5).square() < 0.04,
        "hill": y > 0.55 + 0.1 * torch.sin(6 * x),
    }
    return {name: mask[None, None].float() for name, mask in masks.items()}


def pictures() -> dict[str, tuple[Tensor, Tensor]]:
    """Return name -> (picture (1, 3, SIDE, SIDE), mask of its figure)."""
    generator = torch.Generator().manual_seed(0)
    made = {}
    for word, colors in zip(("dark", "light"), COLORS, strict=True):
        ground, paint = (torch.tensor(color).view(1, 3, 1, 1) for color in colors)
        for name, mask in figures().items():
            noise = NOISE * torch.randn(1, 3, SIDE, SIDE, generator=generator)
            made[f"{word} {name}"] = ((torch.lerp(ground, paint, mask) + noise).clamp(0, 1), mask)
    return made


def halo(pastiche: Tensor, mask: Tensor) -> float:
    """Return the largest difference of a band's mean luma from the ground's, in levels of 255."""

    def within(distance: int) -> Tensor:
        return max_pool2d(mask, 2 * distance + 1, 1, distance)

    def mean(near: int, far: int) -> Tensor:
        ring = within(far) - within(near)
        return (grey * ring).sum() / ring.sum()

    grey = luma(pastiche)
    ground = mean(FAR, FARTHEST)
    bands = [mean(near, near + WIDE) - ground for near in range(FIRST, LAST, WIDE)]
    return 255 * float(torch.stack(bands).abs().max())


def rows(network: str) -> list[list[str]]:
    """Return a row for each picture: network, picture, mean and largest halo of the styles."""
    file = read(network_file(network))
    styles = file.styles
    if file.network.encoder:
        kinds = ("style", "paintings")
        styles = sorted(str(path) for kind in kinds for path in (ASSETS / kind).glob("*.jpg"))
    found = dict[str, list[float]]()
    for style in styles:
        painter = Painter(ApplyConfig(network=network, style=style, precision="float32"))
        for name, (picture, mask) in pictures().items():
            found.setdefault(name, []).append(halo(painter.paint(picture), mask))
    found["all"] = [value for values in found.values() for value in values]
    return [
        [network, name, f"{sum(values) / len(values):.0f}", f"{max(values):.0f}"]
        for name, values in found.items()
    ]


if __name__ == "__main__":
    head = ["network", "picture", "mean of the halo", "maximum"]
    print(table(head, [row for network in sys.argv[1:] or shipped() for row in rows(network)]))
