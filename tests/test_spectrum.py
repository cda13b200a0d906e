"""The coordinates of L-BFGS: a plain symmetric linear map that favours broad tones."""

import pytest
import torch
from helpers import picture

from styletransfer.spectrum import CORNER, Spectrum

SIZES = [(16, 20), (15, 21), (1, 7), (8, 1)]


@pytest.mark.parametrize("size", SIZES)
def test_the_map_is_its_own_transpose(size):
    """<A x, y> = <x, A y>: what the chain rule needs."""
    x, y = picture(1, *size), picture(2, *size)
    spectrum = Spectrum(x, 1.0)
    left, right = (spectrum.apply(x) * y).sum(), (x * spectrum.apply(y)).sum()
    assert left.item() == pytest.approx(right.item(), rel=1e-12)


@pytest.mark.parametrize("size", SIZES)
def test_exponent_0_changes_nothing(size):
    x = picture(1, *size)
    torch.testing.assert_close(Spectrum(x, 0.0).apply(x), x)


@pytest.mark.parametrize("exponent", [0.5, 1.0])
def test_gain_of_a_wave(exponent):
    """Waves of 2 and of 8 pixels: their amplitudes change in the ratio of the formula."""
    columns = torch.arange(16, dtype=torch.float64)
    gains = []
    for frequency in (0.125, 0.5):
        wave = torch.cos(2 * torch.pi * frequency * columns).expand(1, 3, 16, 16)
        gains.append((Spectrum(wave, exponent).apply(wave) / wave)[0, 0, 0, 0].item())
    expected = ((0.5 + CORNER) / (0.125 + CORNER)) ** exponent
    assert gains[0] / gains[1] == pytest.approx(expected)


def test_noise_keeps_its_length():
    x = picture(1, 64, 64) - 0.5
    assert Spectrum(x, 1.0).apply(x).norm() == pytest.approx(x.norm().item(), rel=0.15)
