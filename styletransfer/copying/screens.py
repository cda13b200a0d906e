"""Finds screens: textures with a period over a painting's page, such as halftone dots or hatching.

If a pixel is copied from where the texture has another phase, dots and lines break. Therefore
`paired.py` also compares these phases: pixels match if they lie at the same place of the texture.
The power spectrum of a painting with a constant period has sharp peaks, which the photograph's
spectrum lacks. Lines that are drawn by hand vary in distance and direction, and give one broad
peak. What the painting has in this band of frequencies is a wave; its phase is that of the lines.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Self

import torch
from torch import Tensor
from torch.fft import fft2, fftfreq, ifft2, rfft2, rfftfreq
from torch.nn.functional import interpolate, normalize

from styletransfer.pictures.images import luma, size_of

# Only frequencies above COARSE cycles per pixel belong to a screen, and at most MOST of them are
# used. A peak of the spectrum holds the powers within INNER steps of its top: at least the share
# LOUD of the power above COARSE. Its top is at least SHARP times the mean power between INNER and
# OUTER steps away, and this ratio is OWN times that of the photographs' spectrum there. For seven
# synthetic artists with a screen, the ratio is at least 160, and 25 times the photograph's. For
# seven without one, it is below SHARP, or at most 10 times the photograph's.
COARSE, INNER, OUTER, LOUD, SHARP, OWN, MOST = 0.06, 3.5, 9.0, 0.03, 80.0, 16.0, 4
# If there is no sharp peak, the frequency f of lines by hand is that of the highest power above
# COARSE_LINES cycles per pixel. The band around f is a Gaussian with the standard deviation
# BAND * |f|. It holds at least the share MUCH of the power above COARSE, and this share is OWN_BAND
# times that of the photographs. For one artist with such lines, it is at least 0.6, and 8 times the
# photographs'. For six artists without lines, it is below 0.1, or at most 3 times the photographs'.
COARSE_LINES, BAND, MUCH, OWN_BAND = 0.09, 0.28, 0.3, 5.0
# If a content image is larger than a painting, `_continued` adds rows and columns to the painting's
# wave. It computes them from the part of the wave that ends EDGE pixels before the border, because
# the last pixels before the border are not reliable.
EDGE = 8
# The spectrum is computed for the middle of a picture, at most SIDE pixels high and wide. A top's
# frequency is then found with a precision of 1 / FINE of the spectrum's step.
SIDE, FINE = 1024, 32
# Weight of the phases beside the other values by which pixels are compared; see `paired.py`.
WEIGHT = 1.0


@dataclass(frozen=True)
class Screen:
    """A Screen holds the frequencies of a texture that is fixed to the page of paintings."""

    #: (n, 2), float64, in cycles per pixel, down and right; n is 0 without a constant period
    frequencies: Tensor
    #: for lines by hand, the wave (H, W) of each painting: complex numbers of modulus 1
    waves: tuple[Tensor, ...] = ()

    def __bool__(self) -> bool:
        return len(self.frequencies) > 0 or len(self.waves) > 0

    @classmethod
    @torch.no_grad()
    def of(cls, paintings: Sequence[Tensor], photographs: Sequence[Tensor]) -> Self:
        """Return the screen of paintings, if they have one; `photographs` show what was painted.

        Both are lists of images (1, 3, H, W), which may differ in size.
        """
        lights, others = (list(map(_middle, images)) for images in (paintings, photographs))
        size = tuple(map(max, zip(*(light.shape for light in lights + others), strict=True)))
        powers, owns = (
            torch.stack([rfft2(light, size).abs().square() for light in each])
            for each in (lights, others)
        )
        power, own = powers.sum(0), owns.sum(0)
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
            sharp, own_sharp = (float(one[peak].max() / one[around].mean()) for one in (power, own))
            is_screen = power[peak].sum() > LOUD * total and sharp > max(SHARP, OWN * own_sharp)
            if not is_screen:
                break
            found.append(_top(lights, size, (float(down[row]), float(right[column]))))
            power[peak] = 0
        line = None if found else _line(powers, own, down, right)
        waves = () if line is None else tuple(_wave(painting, line) for painting in paintings)
        return cls(torch.tensor(found, dtype=torch.float64).view(-1, 2), waves)

    def phases(self, image: Tensor, factor: float, number: int = 0) -> Tensor:
        """Return cosines and sines of the screen's phases at an image's pixels, (pixels, 2 * n).

        `factor` is the factor by which `image` (1, 3, h, w) was reduced. The frequencies are those
        of pictures at full size, so a screen may be finer than the pixels of `image`. With waves,
        the phases are those of painting `number`; a larger `image` continues the painting's lines.
        """
        if self.waves:
            height, width = size_of(image)
            down, right = (ceil((side + 1) / factor) for side in (height, width))
            wave = _continued(_continued(self.waves[number], down).mT, right).mT
            planes = torch.view_as_real(wave.contiguous()).permute(2, 0, 1)[None]
            planes = interpolate(planes, scale_factor=factor, mode="bilinear")
            planes = normalize(planes[..., :height, :width])
            return planes[0].flatten(1).mT.to(image) * WEIGHT
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


def _line(powers: Tensor, own: Tensor, down: Tensor, right: Tensor) -> tuple[float, float] | None:
    """Return the frequency of lines by hand, or None if a painting has no such lines.

    `powers` holds the spectrum of each painting, `own` is that of all photographs. `down` and
    `right` are the frequencies of their rows and columns, in cycles per pixel.
    """
    radius = torch.hypot(down, right)
    power = powers.sum(0) * (radius >= COARSE_LINES)
    row, column = divmod(int(power.argmax()), len(right))
    line = float(down[row]), float(right[column])
    near = _band(line, down, right) + _band((-line[0], -line[1]), down, right)
    all_own, *all_powers = (one * (radius >= COARSE) for one in (own, *powers))
    most, *shares = (
        float((one * near).sum() / one.sum().clamp_min(1e-12)) for one in (all_own, *all_powers)
    )
    return line if min(shares) > max(MUCH, OWN_BAND * most) else None


def _band(line: tuple[float, float], down: Tensor, right: Tensor) -> Tensor:
    """Return the weights of frequencies (down, right) in the band around the frequency `line`."""
    squares = (down - line[0]).square() + (right - line[1]).square()
    return torch.exp(-squares / (2 * BAND**2 * (line[0] ** 2 + line[1] ** 2)))


def _wave(painting: Tensor, line: tuple[float, float]) -> Tensor:
    """Return the wave of a painting's lines: complex numbers (H, W) of modulus 1.

    `line` is the frequency of the lines. The wave is the painting's analytic signal in the band.
    """
    light = luma(painting.cpu().float())[0, 0]
    down, right = (fftfreq(side) for side in light.shape)
    wave: Tensor = ifft2(fft2(light - light.mean()) * _band(line, down[:, None], right)).sgn()
    return wave


def _continued(wave: Tensor, height: int) -> Tensor:
    """Return a wave (`height`, W): `wave` (H, W), of which rows are added at the end or removed.

    The phase is continued by reflection at a row, so that its gradient has no step. It is the row
    EDGE from the end, because the transform in `_wave` lets opposite borders of a page meet.
    """
    longer = wave[: max(1, len(wave) - EDGE)]
    while len(longer) < height:
        before = longer.flip(0)[min(1, len(longer) - 1) :]
        longer = torch.cat([longer, longer[-1].square() * before.conj()])
    return torch.cat([wave, longer[len(wave) :]])[:height]
