"""The coordinates of L-BFGS: a plain symmetric linear map that favours broad tones and colours."""

import pytest
import torch
from helpers import picture

from styletransfer.optimize.optimizers import Preconditioner

GREY, COLOUR = [1.0, 1.0, 1.0], [1.0, -0.5, -0.5]


@pytest.mark.parametrize("size", [(16, 20), (15, 21), (1, 7), (8, 1)])
def test_the_map_is_its_own_transpose_and_exponent_0_changes_nothing(size):
    """<A x, y> = <x, A y>: what the chain rule needs."""
    x, y = picture(1, *size), picture(2, *size)
    gain = Preconditioner(x, 1.0)
    left, right = (gain.apply(x) * y).sum(), (x * gain.apply(y)).sum()
    assert left.item() == pytest.approx(right.item(), rel=1e-12)
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
def test_the_gain_of_a_wave_is_the_formula(exponent):
    """1 / (0.02 + its frequency), which counts as 0.2 at most, or 0.1 in colours."""
    preconditioner = Preconditioner(picture(0, 16, 16), exponent)
    along = torch.fft.fftfreq(16, dtype=torch.float64)
    frequencies = torch.hypot(along[:, None], along[None, :9].abs())
    squares = (frequencies.clamp(max=0.2) + 0.02) ** (-2 * exponent)
    for colour, limit in ((GREY, 0.2), (COLOUR, 0.1)):
        for frequency in (0.0, 1 / 16, 0.125, 0.5):
            expected = (min(frequency, limit) + 0.02) ** -exponent / squares.mean().sqrt()
            assert gain(preconditioner, colour, frequency) == pytest.approx(expected.item())
