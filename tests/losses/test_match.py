"""The match loss against a one-line formula; test_functions.py compares its gradient."""

import pytest
import torch
from torch.nn.functional import cosine_similarity

from styletransfer.losses import MatchDistance
from styletransfer.losses.match import cosine_gradient, cosine_loss

pytestmark = pytest.mark.usefixtures("seeded")


def features(*shape):
    return torch.randn(shape or (1, 5, 4, 3), dtype=torch.float64)


def formula(x, target):
    return (1 - cosine_similarity(x, target, dim=1)).mean()


def test_the_loss_is_its_formula_and_ignores_lengths():
    x, target = features(), features()
    torch.testing.assert_close(cosine_loss(x, target), formula(x, target), rtol=1e-12, atol=0)
    torch.testing.assert_close(cosine_loss(3 * x, 7 * target), cosine_loss(x, target))
    assert cosine_loss(x, x).item() == pytest.approx(0, abs=1e-12)
    assert cosine_loss(x, -x).item() == pytest.approx(2)


def test_a_position_without_features_gets_no_gradient():
    x, target = features(), features()
    x[:, :, 1, 2], target[:, :, 3, 0] = 0, 0
    losses = 1 - cosine_similarity(x, target, dim=1)
    assert losses[0, 1, 2] == losses[0, 3, 0] == 1
    losses[0, 3, 0] = 0  # no target, no loss
    for loss_at in (lambda x: MatchDistance(target).tap(x)[1], MatchDistance(target)):
        leaf = x.clone().requires_grad_()
        loss = loss_at(leaf)
        torch.testing.assert_close(loss, losses.mean())
        (gradient,) = torch.autograd.grad(loss, leaf)
        assert gradient.isfinite().all()
        assert not gradient[:, :, 1, 2].any()
        assert not gradient[:, :, 3, 0].any()


def test_low_precision_keeps_the_loss_in_float32():
    x, target = features(1, 64, 8, 8), features(1, 64, 8, 8)
    low = cosine_loss(x.bfloat16(), target.bfloat16())
    assert low.dtype == torch.float32
    assert low.item() == pytest.approx(cosine_loss(x, target).item(), abs=1e-2)
    assert cosine_gradient(x.bfloat16(), target.bfloat16()).dtype == torch.bfloat16
