"""The filter against the lattice that style networks paint."""

import torch
from helpers import picture

from styletransfer.networks.lattice import WithoutLattice

filtered = WithoutLattice()
WAVES = torch.tensor([0.3, -0.1, 0.2, -0.4]).double().repeat(16)
LATTICE = WAVES[:, None] + WAVES.roll(1) + WAVES[:, None] * WAVES


def ramp():
    """Return (1, 2, 64, 64), values that rise along rows, and along columns."""
    rise = torch.arange(64).double() / 64
    return torch.stack([rise.expand(64, 64), rise[:, None].expand(64, 64)])[None]


def test_a_lattice_goes_and_the_picture_below_it_stays():
    made = filtered(ramp() + LATTICE)
    middle = (..., slice(8, -8), slice(8, -8))
    assert (made - ramp() - LATTICE.mean())[middle].abs().max() < 0.01
    assert (filtered(ramp()) - ramp()).abs().max() < 0.01


def test_an_edge_is_hardly_repeated():
    edge = (torch.arange(64) >= 31).double().expand(1, 1, 64, 64)
    assert (filtered(edge) - edge).abs().max() < 0.05  # 0.1, if all detail counted alike
    far = (..., slice(8, -8), slice(52, 60))
    change = (filtered(edge + 0.05 * LATTICE) - edge - 0.05 * LATTICE.mean())[far]
    assert change.std() < 0.05 * (0.05 * LATTICE).std()


def test_strokes_stay():
    strokes = picture(0, 64, 64)
    change = filtered(strokes) - strokes
    assert 0 < change.std() < 0.3 * strokes.std()
