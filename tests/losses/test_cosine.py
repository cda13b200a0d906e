"""The match loss against a one-line formula, and its gradient against autograd's."""

import pytest
import torch
from helpers import MODES
from torch.nn.functional import cosine_similarity

from styletransfer.losses import get_loss_mode
from styletransfer.losses.cosine import cosine_gradient, cosine_loss, cosine_tap

pytestmark = pytest.mark.usefixtures("seeded")


def features(*shape, layout=torch.contiguous_format):
    x = torch.randn(shape or (1, 5, 4, 3), dtype=torch.float64)
    return x.to(memory_format=layout).requires_grad_()


def formula(x, target):
    return (1 - cosine_similarity(x, target, dim=1)).mean()


def test_the_loss_is_its_formula_and_ignores_lengths():
    x, target = features(), features().detach()
    torch.testing.assert_close(cosine_loss(x, target), formula(x, target), rtol=1e-12, atol=0)
    torch.testing.assert_close(cosine_loss(3 * x, 7 * target), cosine_loss(x, target))
    assert cosine_loss(x, x).item() == pytest.approx(0, abs=1e-12)
    assert cosine_loss(x, -x).item() == pytest.approx(2)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_the_tap_has_autograds_gradients(layout):
    """Gradients are equal from the loss, from the features passed through, and from both."""
    x, target = features(layout=layout), features().detach()
    tapped, loss = cosine_tap(x, target)
    assert tapped.data_ptr() == x.data_ptr()
    expected, weight = formula(x, target), torch.randn_like(x)
    for outputs, others in (
        ([loss], [expected]),
        ([tapped], [x * 1]),
        ([tapped, loss], [x * 1, expected]),
    ):
        slopes = [weight if output is tapped else weight.sum() for output in outputs]
        (ours,) = torch.autograd.grad(outputs, x, slopes, retain_graph=True)
        (theirs,) = torch.autograd.grad(others, x, slopes, retain_graph=True)
        assert (ours - theirs).norm() <= 1e-12 * theirs.norm()
    assert torch.autograd.gradcheck(lambda x: cosine_tap(x, target), x)
    assert torch.autograd.gradgradcheck(lambda x: cosine_tap(x, target), x)


def test_a_position_without_features_gets_no_gradient():
    x, target = features().detach(), features().detach()
    x[:, :, 1, 2], target[:, :, 3, 0] = 0, 0
    losses = 1 - cosine_similarity(x, target, dim=1)
    assert losses[0, 1, 2] == losses[0, 3, 0] == 1
    losses[0, 3, 0] = 0  # no target, no loss
    for tap in (cosine_tap, lambda x, target: (x, cosine_loss(x, target))):
        leaf = x.clone().requires_grad_()
        loss = tap(leaf, target)[1]
        torch.testing.assert_close(loss, losses.mean())
        (gradient,) = torch.autograd.grad(loss, leaf)
        assert gradient.isfinite().all()
        assert not gradient[:, :, 1, 2].any()
        assert not gradient[:, :, 3, 0].any()


def test_low_precision_keeps_the_loss_in_float32():
    x, target = features(1, 64, 8, 8).detach(), features(1, 64, 8, 8).detach()
    low = cosine_loss(x.bfloat16(), target.bfloat16())
    assert low.dtype == torch.float32
    assert low.item() == pytest.approx(cosine_loss(x, target).item(), abs=1e-2)
    assert cosine_gradient(x.bfloat16(), target.bfloat16()).dtype == torch.bfloat16


@pytest.mark.parametrize("mode", MODES)
def test_modes_have_one_match_loss(mode):
    x, target = features(), features().detach()
    module = get_loss_mode(mode).match(target, 4.0)
    assert torch.equal(module(x), x)
    weight = 4.0 if mode == "fake_backward" else 1.0
    torch.testing.assert_close(module.loss, weight * formula(x, target))
