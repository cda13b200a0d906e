"""The match loss against a one-line formula; test_functions.py compares its gradient."""

import pytest
import torch
from torch.nn.functional import cosine_similarity

from styletransfer.losses import MatchDistance, match

pytestmark = pytest.mark.usefixtures("seeded")


def features(*shape):
    return torch.randn(shape or (1, 5, 4, 3), dtype=torch.float64)


def formula(x, target):
    return (1 - cosine_similarity(x, target, dim=1)).mean()


def by_tap(x, target):
    return MatchDistance(target).tap(x)[1]


@pytest.mark.parametrize("loss", [lambda x, target: MatchDistance(target).value(x), by_tap])
def test_the_loss_is_its_formula_and_ignores_lengths(loss):
    x, target = features(), features()
    torch.testing.assert_close(loss(x, target), formula(x, target), rtol=1e-12, atol=0)
    torch.testing.assert_close(loss(3 * x, 7 * target), loss(x, target))
    assert loss(x, x).item() == pytest.approx(0, abs=1e-12)
    assert loss(x, -x).item() == pytest.approx(2)


@pytest.mark.parametrize("loss", [MatchDistance.value, lambda loss, x: loss.tap(x)[1]])
def test_positions_count_by_their_weights(loss):
    x, target, weights = features(), features(), torch.rand(1, 1, 4, 3, dtype=torch.float64)
    expected = (weights[0] * (1 - cosine_similarity(x, target, dim=1))).mean()
    torch.testing.assert_close(loss(MatchDistance(target, weights), x), expected)


def test_many_rows_are_multiplied_a_few_at_a_time(monkeypatch):
    monkeypatch.setattr(match, "BLOCK", 31)  # two of the eleven rows of 3 x 5 values
    x, target = features(1, 5, 11, 3), features(1, 5, 11, 3)
    loss = MatchDistance(target).tap(x)[1]
    torch.testing.assert_close(loss, formula(x, target), rtol=1e-12, atol=0)


def test_a_part_compares_with_the_part_of_its_target():
    x, target = features(1, 5, 6, 8), features(1, 5, 6, 8)
    target[:, :, 3, 2] = 0
    window = (..., slice(1, 5), slice(2, 8))
    part = MatchDistance(target).at(window)
    assert torch.equal(part.value(x[window]), MatchDistance(target[window]).value(x[window]))


def test_a_position_without_features_gets_no_gradient():
    x, target = features(), features()
    x[:, :, 1, 2], target[:, :, 3, 0] = 0, 0
    losses = 1 - cosine_similarity(x, target, dim=1)
    assert losses[0, 1, 2] == losses[0, 3, 0] == 1
    losses[0, 3, 0] = 0  # no target, no loss
    for loss_at in (lambda x: MatchDistance(target).tap(x)[1], MatchDistance(target).value):
        leaf = x.clone().requires_grad_()
        loss = loss_at(leaf)
        torch.testing.assert_close(loss, losses.mean())
        (gradient,) = torch.autograd.grad(loss, leaf)
        assert gradient.isfinite().all()
        assert not gradient[:, :, 1, 2].any()
        assert not gradient[:, :, 3, 0].any()


def test_bfloat16_is_summed_in_float32():
    x, target = features(1, 64, 8, 8), features(1, 64, 8, 8)
    leaf = x.bfloat16().requires_grad_()
    _, low = MatchDistance(target.bfloat16()).tap(leaf)
    assert low.dtype == torch.float32
    assert low.item() == pytest.approx(formula(x, target).item(), abs=1e-3)
    (gradient,) = torch.autograd.grad(low, leaf)
    (exact,) = torch.autograd.grad(formula(x.requires_grad_(), target), x)
    assert gradient.dtype == torch.bfloat16
    assert (gradient - exact).norm() < 0.01 * exact.norm()
