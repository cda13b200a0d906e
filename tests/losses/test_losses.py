"""Each loss against its one-line formula."""

import pytest
import torch
from helpers import picture

from styletransfer.errors import UserError
from styletransfer.functions.moments import Moments, gram_matrix, moments
from styletransfer.losses import (
    GRAM,
    STYLE_LOSSES,
    content_loss,
    get_style_loss,
    mean_square,
    total_variation,
)


def features(seed=0, channels=4, height=5, width=7):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(1, channels, height, width, generator=generator, dtype=torch.float64)


def loss_of(name, f, style):
    measure = STYLE_LOSSES[name]
    return measure.loss(moments(f), measure.statistic(moments(style)))


def test_content_loss():
    f, p = features(0), features(1)
    assert torch.allclose(content_loss(f, p), ((f - p) ** 2).mean(), rtol=1e-12)


def test_gram_matrix():
    f = features()
    flat = f[0].flatten(1)
    assert torch.allclose(gram_matrix(f), flat @ flat.T / (4 * 5 * 7), rtol=1e-12)


def test_moments():
    f = features()
    flat = f[0].flatten(1)
    mean, second = moments(f)
    assert torch.allclose(mean, flat.mean(1), rtol=1e-12)
    assert torch.allclose(second, flat @ flat.T / 35, rtol=1e-12)


def test_gram_is_the_squared_distance_of_gram_matrices():
    f, style = features(0), features(1)
    expected = ((gram_matrix(f) - gram_matrix(style)) ** 2).mean()
    assert torch.allclose(loss_of("gram", f, style), expected, rtol=1e-12)
    assert GRAM.loss(moments(f, with_mean=False), gram_matrix(style)) == pytest.approx(expected)


def test_moments_compares_means_and_standard_deviations():
    f, style = features(0, height=50), 3 * features(1, height=50) + 1
    (a, b), (c, d) = ((x.mean((0, 2, 3)), x.var((0, 2, 3), correction=0)) for x in (f, style))
    b, d = ((var + 1e-4 * var.mean()).sqrt() for var in (b, d))
    expected = ((a - c) ** 2 + (b - d) ** 2).sum() / 8
    assert torch.allclose(loss_of("moments", f, style), expected, rtol=1e-10)


def test_wasserstein_of_one_channel_is_that_of_two_normal_distributions():
    f, style = features(0, 1, 40), 3 * features(1, 1, 40) + 1
    ridge = 1e-4 * style.var(correction=0)
    a, b = ((x.var(correction=0) + ridge).sqrt() for x in (f, style))
    expected = (f.mean() - style.mean()) ** 2 + (a - b) ** 2
    assert torch.allclose(loss_of("wasserstein", f, style), expected, rtol=1e-9)


def test_wasserstein_of_covariances_is_the_formula_with_roots_of_matrices():
    f, style = features(0, 4, 40), (features(1, 4, 40).movedim(1, 3) @ torch.rand(4, 4).double())
    style = style.movedim(3, 1)

    def covariance(x):
        return torch.cov(x[0].flatten(1), correction=0) + 1e-4 * ridge * torch.eye(4)

    def root(matrix):
        values, vectors = torch.linalg.eigh(matrix)
        return vectors @ values.sqrt().diag() @ vectors.T

    ridge = style[0].flatten(1).var(1, correction=0).mean()
    one, other = covariance(f), covariance(style)
    both = root(root(other) @ one @ root(other))
    shift = (f.mean((0, 2, 3)) - style.mean((0, 2, 3))).square().sum()
    expected = shift + one.trace() + other.trace() - 2 * both.trace()
    assert torch.allclose(loss_of("wasserstein", f, style), expected, rtol=1e-9)


@pytest.mark.parametrize("name", STYLE_LOSSES)
def test_style_losses_do_not_see_places(name):
    f = features()
    shuffled = f.flatten(2)[..., torch.randperm(35)].view_as(f)
    assert loss_of(name, shuffled, f).abs() < 1e-7 * loss_of(name, 0 * f, f)


@pytest.mark.parametrize("name", ["moments", "wasserstein"])
def test_a_flat_feature_is_told_from_a_contrasty_one_of_the_same_mean_square(name):
    half = torch.cat([torch.zeros(1, 1, 4, 4), torch.ones(1, 1, 4, 4)], dim=3).double()
    flat = torch.full_like(half, 0.5**0.5)
    assert loss_of("gram", flat, half) < 1e-30
    assert loss_of(name, flat, half) > 0.1


@pytest.mark.parametrize("name", STYLE_LOSSES)
@pytest.mark.parametrize("kind", ["flat", "zeros", "a dead channel", "few positions"])
def test_gradients_stay_finite_at_corners(name, kind):
    corner = {
        "flat": torch.ones(1, 4, 5, 7),
        "zeros": torch.zeros(1, 4, 5, 7),
        "a dead channel": features() * torch.tensor([1.0, 0, 1, 1]).view(1, 4, 1, 1),
        "few positions": features(height=1, width=2),
    }[kind].double()
    for f, style in ((corner, features(1)), (features(1), corner), (corner, corner)):
        leaf = f.clone().requires_grad_()
        loss = loss_of(name, leaf, style)
        loss.backward()
        assert loss >= -1e-10
        assert leaf.grad.isfinite().all()


@pytest.mark.parametrize("name", STYLE_LOSSES)
def test_a_variance_that_rounding_has_made_negative_counts_as_none(name):
    """As of a flat picture in float32."""
    measure, mean = STYLE_LOSSES[name], torch.full((4,), 70.0)
    flat = Moments(mean, torch.outer(mean, mean))
    rounded = Moments(mean, flat.second - 0.01 * torch.eye(4))
    varied = moments(features().float() + 70)
    for pastiche, style, expected in (
        (varied, rounded, measure.loss(varied, measure.statistic(flat))),
        (rounded, varied, measure.loss(flat, measure.statistic(varied))),
    ):
        leaves = Moments(*(moment.clone().requires_grad_() for moment in pastiche))
        loss = measure.loss(leaves, measure.statistic(style))
        slopes = torch.autograd.grad(loss, leaves, allow_unused=True, materialize_grads=True)
        assert loss.item() == pytest.approx(expected.item(), rel=0.02)
        assert all(slope.isfinite().all() for slope in slopes)


@pytest.mark.parametrize("name", STYLE_LOSSES)
def test_float32_finds_no_distance_between_equal_features(name):
    """Of 16 channels at 4 places, whose covariance has eigenvalues of 0."""
    f = features(0, 16, 2, 2).float()
    assert loss_of(name, f, f).dtype == torch.float32
    assert loss_of(name, f, f).abs() < 1e-7 * loss_of(name, 0 * f, f)


@pytest.mark.parametrize("name", STYLE_LOSSES)
def test_several_styles_are_averages_of_moments(name):
    """The moments of two pictures side by side are the mean of their moments."""
    one, other = features(0), features(1)
    measure = STYLE_LOSSES[name]
    mixed = Moments(*((a + b) / 2 for a, b in zip(moments(one), moments(other), strict=True)))
    both = moments(torch.cat([one, other], dim=3))
    assert torch.allclose(measure.statistic(mixed), measure.statistic(both), rtol=1e-12)


def test_unknown_style_loss_is_named():
    with pytest.raises(UserError, match=r"unknown objective\.style_loss 'magic'; choose .*gram"):
        get_style_loss("magic")


def test_total_variation():
    x = picture(height=2, width=2)
    a, b, c, d = x[0].flatten(1).unbind(1)
    steps = (c - a) ** 2 + (d - b) ** 2 + (b - a) ** 2 + (d - c) ** 2
    assert torch.allclose(total_variation(x), steps.sum() / 12, rtol=1e-12)


def test_total_variation_of_a_line_and_of_a_flat_picture():
    line = picture(height=1, width=5)
    assert torch.allclose(total_variation(line), line.diff(dim=3).square().sum() / 15, rtol=1e-12)
    assert total_variation(torch.full((1, 3, 4, 4), 0.7)) == 0


def test_mean_square_sums_low_precision_in_float32():
    ones = torch.full((1, 1, 300, 300), 1.0078125, dtype=torch.bfloat16)
    assert mean_square(ones).dtype == torch.float32
    assert mean_square(ones).item() == pytest.approx(1.0078125**2, rel=1e-6)
