"""Each loss against a one-line formula."""

import pytest
import torch
from helpers import picture
from torch.testing import assert_close

from styletransfer.losses import (
    STYLE_LOSSES,
    ContentDistance,
    StyleDistance,
    mean_square,
    temporal_loss,
    total_variation,
)
from styletransfer.losses.moments import Moments, gram_matrix, moments


def features(seed=0, channels=4, height=5, width=7):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(1, channels, height, width, generator=generator, dtype=torch.float64)


def loss_of(name, f, style):
    measure = STYLE_LOSSES[name]
    return measure.loss(moments(f), target_of(measure, moments(style)))


def target_of(measure, moments):
    """Return the target of a style loss for the style's moments."""
    return measure.prepare(measure.statistic(moments))


def covariance(x):
    return torch.cov(x[0].flatten(1), correction=0)


def test_moments_and_the_losses_on_them():
    f, p = features(0), features(1)
    flat = f[0].flatten(1)
    mean, second = moments(f)
    assert_close(mean, flat.mean(1), rtol=1e-12, atol=0)
    assert_close(second, flat @ flat.T / 35, rtol=1e-12, atol=0)
    assert_close(gram_matrix(f), flat @ flat.T / (4 * 5 * 7), rtol=1e-12, atol=0)
    assert_close(ContentDistance(p).value(f), ((f - p) ** 2).mean(), rtol=1e-12, atol=0)
    expected = ((gram_matrix(f) - gram_matrix(p)) ** 2).mean()
    assert_close(loss_of("gram", f, p), expected, rtol=1e-12, atol=0)


def test_moments_compares_means_and_standard_deviations():
    f, style = features(0, height=50), 3 * features(1, height=50) + 1
    (a, b), (c, d) = ((x.mean((0, 2, 3)), x.var((0, 2, 3), correction=0)) for x in (f, style))
    b, d = ((var + 1e-4 * var.mean()).sqrt() for var in (b, d))
    expected = ((a - c) ** 2 + (b - d) ** 2).sum() / 8
    assert_close(loss_of("moments", f, style), expected, rtol=1e-10, atol=0)


def test_wasserstein_is_the_formula_with_roots_of_matrices():
    f, mixed = features(0, 4, 40), features(2, 4, 4, 1)[0, ..., 0]
    style = 1 + (features(1, 4, 40).movedim(1, 3) @ mixed).movedim(3, 1)

    def root(matrix):
        values, vectors = torch.linalg.eigh(matrix)
        return vectors @ values.sqrt().diag() @ vectors.T

    ridge = 1e-4 * covariance(style).diagonal().mean() * torch.eye(4)
    one, other = covariance(f) + ridge, covariance(style) + ridge
    both = root(root(other) @ one @ root(other))
    shift = (f.mean((0, 2, 3)) - style.mean((0, 2, 3))).square().sum()
    expected = shift + one.trace() + other.trace() - 2 * both.trace()
    assert_close(loss_of("wasserstein", f, style), expected, rtol=1e-9, atol=0)


def test_a_step_does_not_factor_the_styles_covariance_again(monkeypatch):
    measure, f = STYLE_LOSSES["wasserstein"], features(0, 4, 40)
    distance = StyleDistance(measure.statistic(moments(features(1, 4, 40))), measure)
    monkeypatch.setattr(torch.linalg, "cholesky_ex", pytest.fail)
    distance(f)
    assert distance.loss > 0


def test_wassersteins_gradient_is_bounded_at_small_eigenvalues():
    """The covariance cancels nearly all of the ridge; the root's derivative is then huge."""
    measure, still = STYLE_LOSSES["wasserstein"], torch.zeros(4, dtype=torch.float64)
    eye = torch.eye(4, dtype=torch.float64)
    second = ((5e-20 - (1e-4 + 1e-12)) * eye).requires_grad_()
    loss = measure.loss(Moments(still, second), target_of(measure, Moments(still, eye)))
    (slope,) = torch.autograd.grad(loss, second)
    assert_close(slope, eye)  # the gradient of the trace alone


@pytest.mark.parametrize("name", STYLE_LOSSES)
def test_gradients_stay_finite_at_corners(name):
    for corner in (
        torch.ones(1, 4, 5, 7).double(),
        torch.zeros(1, 4, 5, 7).double(),
        features() * torch.tensor([1.0, 0, 1, 1]).view(1, 4, 1, 1),  # a dead channel
        features(height=1, width=2),  # few positions
    ):
        for f, style in ((corner, features(1)), (features(1), corner), (corner, corner)):
            leaf = f.clone().requires_grad_()
            loss = loss_of(name, leaf, style)
            loss.backward()
            assert loss >= -1e-10
            assert leaf.grad.isfinite().all()
    f = features(0, 16, 2, 2).float()  # the covariance has eigenvalues of 0
    assert loss_of(name, f, f).dtype == torch.float32
    assert loss_of(name, f, f).abs() < 1e-5 * loss_of(name, 0 * f, f)


@pytest.mark.parametrize("name", STYLE_LOSSES)
def test_a_variance_below_0_by_rounding_counts_as_0(name):
    """Rounding makes a variance negative, for example for a constant image in float32."""
    measure, mean = STYLE_LOSSES[name], torch.full((4,), 70.0)
    flat = Moments(mean, torch.outer(mean, mean))
    rounded = Moments(mean, flat.second - 0.01 * torch.eye(4))
    varied = moments(features().float() + 70)
    for pastiche, style, expected in (
        (varied, rounded, measure.loss(varied, target_of(measure, flat))),
        (rounded, varied, measure.loss(flat, target_of(measure, varied))),
    ):
        leaves = Moments(*(moment.clone().requires_grad_() for moment in pastiche))
        loss = measure.loss(leaves, target_of(measure, style))
        slopes = torch.autograd.grad(loss, leaves, allow_unused=True, materialize_grads=True)
        assert loss.item() == pytest.approx(expected.item(), rel=0.02)
        assert all(slope.isfinite().all() for slope in slopes)


def test_total_variation_and_weighted_and_plain_mean_squares():
    x = picture(height=2, width=2)
    a, b, c, d = x[0].flatten(1).unbind(1)
    steps = (c - a) ** 2 + (d - b) ** 2 + (b - a) ** 2 + (d - c) ** 2
    assert_close(total_variation(x), steps.sum() / 12, rtol=1e-12, atol=0)
    line = picture(height=1, width=5)
    assert_close(total_variation(line), line.diff(dim=3).square().sum() / 15, rtol=1e-12, atol=0)
    assert total_variation(torch.full((1, 3, 4, 4), 0.7)) == 0
    image, target, weights = picture(1, 2, 3), picture(2, 2, 3), picture(3, 2, 3)[:, :1]
    expected = (weights * (image - target) ** 2).sum() / 18
    assert_close(temporal_loss(image, target, weights), expected, rtol=1e-12, atol=0)
    ones = torch.full((1, 1, 300, 300), 1.0078125, dtype=torch.bfloat16)
    assert mean_square(ones).dtype == torch.float32
    assert mean_square(ones).item() == pytest.approx(1.0078125**2, rel=1e-6)
