"""The coordinates of L-BFGS: a plain symmetric linear map that favours broad tones and colours."""

import pytest
import torch
from helpers import picture

from styletransfer.optimize.preconditioner import (
    COLOUR_LIMIT,
    CORNER,
    LIGHTNESS_LIMIT,
    Preconditioner,
)

SIZES = [(16, 20), (15, 21), (1, 7), (8, 1)]


@pytest.mark.parametrize("size", SIZES)
def test_the_map_is_its_own_transpose(size):
    """<A x, y> = <x, A y>: what the chain rule needs."""
    x, y = picture(1, *size), picture(2, *size)
    preconditioner = Preconditioner(x, 1.0)
    left, right = (preconditioner.apply(x) * y).sum(), (x * preconditioner.apply(y)).sum()
    assert left.item() == pytest.approx(right.item(), rel=1e-12)


@pytest.mark.parametrize("size", SIZES)
def test_exponent_0_changes_nothing(size):
    x = picture(1, *size)
    torch.testing.assert_close(Preconditioner(x, 0.0).apply(x), x)


def gain(preconditioner: Preconditioner, colour: list[float], frequency: float) -> float:
    """Return by how much a wave along the columns, of this colour, is amplified."""
    columns = torch.arange(16, dtype=torch.float64)
    wave = torch.cos(2 * torch.pi * frequency * columns).expand(1, 3, 16, 16)
    wave = wave * torch.tensor(colour, dtype=torch.float64).view(3, 1, 1)
    gains = preconditioner.apply(wave) / wave
    assert gains[wave.abs() > 1e-9].std() < 1e-9  # a wave stays a wave
    return gains[0, 0, 0, 0].item()


@pytest.mark.parametrize("exponent", [0.5, 1.0])
@pytest.mark.parametrize(
    ("colour", "limit"),
    [([1.0, 1.0, 1.0], LIGHTNESS_LIMIT), ([1.0, -0.5, -0.5], COLOUR_LIMIT)],
    ids=["lightness", "colour"],
)
def test_gain_of_a_wave(exponent, colour, limit):
    """Waves of 16, 8 and 2 pixels: their amplitudes change in the ratio of the formula."""
    preconditioner = Preconditioner(picture(0, 16, 16), exponent)
    broad = gain(preconditioner, colour, 1 / 16)
    for frequency in (0.125, 0.5):
        expected = ((min(frequency, limit) + CORNER) / (1 / 16 + CORNER)) ** exponent
        assert broad / gain(preconditioner, colour, frequency) == pytest.approx(expected)


def test_fine_colours_gain_more_than_fine_lightness():
    preconditioner = Preconditioner(picture(0, 16, 16), 1.0)
    ratio = gain(preconditioner, [1.0, -1.0, 0.0], 0.5) / gain(preconditioner, [1.0, 1.0, 1.0], 0.5)
    assert ratio == pytest.approx((LIGHTNESS_LIMIT + CORNER) / (COLOUR_LIMIT + CORNER))


def test_grey_noise_keeps_its_length():
    x = (picture(1, 64, 64) - 0.5).mean(1, keepdim=True).expand(1, 3, 64, 64)
    assert Preconditioner(x, 1.0).apply(x).norm() == pytest.approx(x.norm().item(), rel=0.15)
