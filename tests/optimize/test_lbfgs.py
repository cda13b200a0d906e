"""L-BFGS: the same path as torch's with one evaluation per step; cases where torch's differs."""

import math
from functools import partial

import pytest
import torch
from helpers import picture

from styletransfer.optimize.optimizers import LBFGS, Preconditioner


def curved(point):
    """Return a convex loss, 0 at 1, whose quadratic terms have factors from 1 to 6."""
    weights = torch.linspace(1, 6, point.numel(), dtype=point.dtype).view_as(point)
    return (weights * (point - 1).square() + 0.1 * (point - 1) ** 4).sum()


def descend(step, point, objective, steps):
    path = []
    for _ in range(steps):
        point.grad = None
        objective(point).backward()
        step()
        path.append(point.detach().clone())
    return torch.stack(path)


def start():
    return torch.zeros(1, 3, 2, 4, dtype=torch.float64).requires_grad_()


@pytest.mark.parametrize(("history", "rate"), [(1, 1.0), (3, 0.6), (20, 1.0)])
def test_it_goes_torchs_way(history, rate):
    theirs, ours = start(), start()
    first = 0.02
    plain = {"max_iter": 1, "tolerance_grad": 0, "tolerance_change": 0}
    oracle = torch.optim.LBFGS([theirs], lr=first * theirs.numel(), history_size=history, **plain)
    step = partial(oracle.step, lambda: 0.0)  # torch needs a closure; its value decides nothing
    wanted = descend(step, theirs, curved, 1)
    oracle.param_groups[0]["lr"] = rate
    wanted = torch.cat([wanted, descend(step, theirs, curved, 9)])
    optimizer = LBFGS(ours, history=history, rate=rate, first=first)
    found = descend(optimizer.step, ours, curved, 10)
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-12)
    assert len(optimizer.pairs) == min(history, 9)


@pytest.mark.parametrize("scale", [2.0**-100, 2.0**100])
def test_the_unit_of_the_loss_does_not_matter(scale):
    """torch's absolute tolerances would fail at either scale."""
    one, other = start(), start()
    wanted = descend(LBFGS(one, history=5, rate=1.0, first=0.25).step, one, curved, 8)
    scaled = LBFGS(other, history=5, rate=1.0, first=0.25)
    found = descend(scaled.step, other, lambda point: scale * curved(point), 8)
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-12)
    assert wanted[0].abs().mean().item() == pytest.approx(0.25, rel=1e-12)


def test_a_flat_place_is_not_left():
    point = start()
    optimizer = LBFGS(point, history=5, rate=1.0, first=0.1)
    path = descend(optimizer.step, point, lambda x: 0 * x.sum(), 3)
    assert torch.equal(path, torch.zeros_like(path))


def test_the_preconditioner_is_its_own_transpose():
    """<A x, y> = <x, A y>; the gradient by the chain rule relies on this."""
    for size in ((16, 20), (15, 21), (1, 7), (8, 1)):
        x, y = picture(1, *size), picture(2, *size)
        gain = Preconditioner(x, 1.0)
        left, right = (gain.apply(x) * y).sum(), (x * gain.apply(y)).sum()
        assert left.item() == pytest.approx(right.item(), rel=1e-12)
        torch.testing.assert_close(Preconditioner(x, 0.0).apply(x), x)


def gain(preconditioner, colour, down, right):
    """Return the factor by which a wave of this colour and these frequencies is amplified."""
    along = torch.arange(16, dtype=torch.float64)
    phase = 2 * torch.pi * (down * along[:, None] + right * along)
    wave = torch.cos(phase) * torch.tensor(colour, dtype=torch.float64).view(1, 3, 1, 1)
    gains = preconditioner.apply(wave) / wave
    assert gains[wave.abs() > 1e-9].std() < 1e-9  # only the amplitude changes
    return gains[0, 0, 0, 0].item()


@pytest.mark.parametrize("exponent", [0.5, 1.0])
def test_the_gain_of_a_wave_is_the_formula(exponent):
    """(exp(3 * excess) / (0.02 + frequency))^exponent over its RMS; exp(-3 * excess) for colour.

    The frequency counts at most 0.2, in colour 0.1; the excess is that of down + right over 0.3.
    """
    preconditioner = Preconditioner(picture(0, 16, 16), exponent)

    def formula(down, right, limit, rise):
        excess = min(max(down + right - 0.3, 0.0), 0.3)
        return (math.exp(rise * excess) / (min(math.hypot(down, right), limit) + 0.02)) ** exponent

    along = [abs(n) / 16 for n in range(-8, 8)]
    mean = sum(formula(d, r, 0.2, 3) ** 2 for d in along for r in along[:9]) / (16 * 9)
    for colour, limit, rise in (([1.0, 1.0, 1.0], 0.2, 3), ([1.0, -0.5, -0.5], 0.1, -3)):
        for waves in ((0, 0), (0, 1 / 16), (0.125, 0), (0, 0.5), (0.25, 0.25), (0.5, 0.375)):
            expected = formula(*waves, limit, rise) / math.sqrt(mean)
            assert gain(preconditioner, colour, *waves) == pytest.approx(expected)
