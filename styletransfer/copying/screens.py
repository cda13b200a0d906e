"""Finds screens: textures with a constant period over a painting's page, such as halftone dots.

The power spectrum of such a painting has sharp peaks, which the photograph's spectrum lacks. If a
pixel is copied from where the texture has another phase, dots and lines break. Therefore
`paired.py` also compares these phases: pixels match if they lie at the same place of the texture.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor
from torch.fft import fftfreq, rfft2, rfftfreq

from styletransfer.pictures.images import luma, size_of

# Only frequencies above COARSE cycles per pixel belong to a screen, and at most MOST of them are
# used. A peak of the spectrum holds the powers within INNER steps of its top: at least the share
# LOUD of the power above COARSE. Its top is at least SHARP times the mean power between INNER and
# OUTER steps away, and this ratio is OWN times that of the photographs' spectrum there. For seven
# synthetic artists with a screen, the ratio is at least 160, and 25 times the photograph's. For
# seven without one, it is below SHARP, or at most 10 times the photograph's.
COARSE, INNER, OUTER, LOUD, SHARP, OWN, MOST = 0.06, 3.5, 9.0, 0.03, 80.0, 16.0, 4
# The spectrum is computed for the middle of a picture, at most SIDE pixels high and wide. A top's
# frequency is then found with a precision of 1 / FINE of the spectrum's step.
SIDE, FINE = 1024, 32
# Weight of the phases beside the other values by which pixels are compared; see `paired.py`.
WEIGHT = 1.0


@dataclass(frozen=True)
class Screen:
    """A Screen holds the frequencies of a texture that is fixed to the page of paintings."""

    #: (n, 2), float64, in cycles per pixel, down and right; n is 0 if there is no screen
    frequencies: Tensor

    def __bool__(self) -> bool:
        return len(self.frequencies) > 0

    @classmethod
    @torch.no_grad()
    def of(cls, paintings: Sequence[Tensor], photographs: Sequence[Tensor]) -> Self:
        """Return the screen of paintings, if they have one; `photographs` show what was painted.

        Both are lists of images (1, 3, H, W), which may differ in size.
        """
        lights, others = (list(map(_middle, images)) for images in (paintings, photographs))
        size = tuple(map(max, zip(*(light.shape for light in lights + others), strict=True)))
        power, own = (
            sum(rfft2(light, size).abs().square() for light in each) for each in (lights, others)
        )
        down, right = fftfreq(size[0]).double()[:, None], rfftfreq(size[1]).double()
        power[torch.hypot(down, right) < COARSE] = 0
        total, found = power.sum(), []
        for _ in range(MOST):
            row, column = divmod(int(power.argmax()), len(right))
            # A peak at the frequency f has a twin at -f, and the spectrum is periodic.
            rows = [((down - each + 0.5) % 1 - 0.5) * size[0] for each in (down[row], -down[row])]
            columns = [(right - each) * size[1] for each in (right[column], -right[column])]
            steps = torch.minimum(*map(torch.hypot, rows, columns))
            peak, around = steps < INNER, (steps > INNER) & (steps < OUTER)
            sharp, own_sharp = (one[peak].max() / one[around].mean() for one in (power, own))
            is_screen = power[peak].sum() > LOUD * total and sharp > max(SHARP, OWN * own_sharp)
            if not is_screen:
                break
            found.append(_top(lights, size, (float(down[row]), float(right[column]))))
            power[peak] = 0
        return cls(torch.tensor(found, dtype=torch.float64).view(-1, 2))

    def phases(self, image: Tensor, factor: float) -> Tensor:
        """Return cosines and sines of the screen's phases at an image's pixels, (pixels, 2 * n).

        `factor` is the factor by which `image` (1, 3, h, w) was reduced. The frequencies are those
        of pictures at full size, so a screen may be finer than the pixels of `image`.
        """
        y, x = (torch.arange(side).double() / factor for side in size_of(image))
        places = torch.stack(torch.meshgrid(y, x, indexing="ij"), -1).view(-1, 2)
        turns = 2 * torch.pi * places @ self.frequencies.mT
        weight: float = WEIGHT / max(1, len(self.frequencies)) ** 0.5
        return torch.cat([turns.cos(), turns.sin()], 1).to(image) * weight


def _middle(image: Tensor) -> Tensor:
    """Return the luma (H, W) of an image's middle, minus its mean, faded to 0 at the borders."""
    height, width = size_of(image)
    top, left = (max(0, side - SIDE) // 2 for side in (height, width))
    light = luma(image[..., top : top + SIDE, left : left + SIDE].cpu().double())[0, 0]
    y, x = (torch.hann_window(n + 2, False, dtype=torch.float64)[1:-1] for n in light.shape)
    return (light - light.mean()) * y[:, None] * x


def _top(
    lights: Sequence[Tensor], size: tuple[int, ...], near: tuple[float, float]
) -> tuple[float, float]:
    """Return the frequency of the highest power within one step of the frequency `near`.

    `lights` are lumas (H, W); a step is that of a spectrum of this `size`.
    """
    parts, power = torch.arange(-FINE, FINE + 1).double() / FINE, torch.zeros(())
    down, right = (middle + parts / side for middle, side in zip(near, size, strict=True))
    for light in lights:
        sides = zip((down, right), light.shape, strict=True)
        turns = (each[:, None] * torch.arange(side) for each, side in sides)
        y, x = (torch.polar(torch.ones_like(one), 2 * torch.pi * one) for one in turns)
        power = power + (y @ light.to(y.dtype) @ x.mT).abs().square()
    row, column = divmod(int(power.argmax()), len(right))
    return float(down[row]), float(right[column])
