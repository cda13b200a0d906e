"""L-BFGS: the same path as torch's with one evaluation per step; cases where torch's differs."""

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


def test_exponent_0_changes_no_coordinates():
    for size in ((16, 20), (15, 21), (1, 7), (8, 1)):
        x = picture(1, *size)
        torch.testing.assert_close(Preconditioner(x, 0.0).apply(x), x)
