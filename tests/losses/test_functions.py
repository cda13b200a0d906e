"""The package's hand-written Functions against formulas and built-in operations."""

import warnings

import pytest
import torch
from comparing import LAYOUTS, assert_same, images, leaf
from torch import nn

from styletransfer.features.extractor import MaxPool, max_pool
from styletransfer.features.wrap_pad import wrap_pad
from styletransfer.losses import ContentDistance, MatchDistance, StyleDistance
from styletransfer.losses.moments import gram_matrix, moments
from styletransfer.losses.style import MomentsTap

pytestmark = pytest.mark.usefixtures("seeded")


def style_formula(features, target):
    f = features.flatten(2)[0]
    return (f @ f.T / f.numel() - target).square().mean()


def tapped_by(distance):
    """Return (features, target) -> the features and the loss, as loss_mode=autograd_function."""
    return lambda features, target: distance(target).tap(features)


def content_formula(features, target):
    return (features - target).square().mean()


def match_formula(features, target):
    return (1 - nn.functional.cosine_similarity(features, target, dim=1)).mean()


def targets(features):
    """Return (tap, formula, target) for the Gram, the content and the match tap at the features."""
    other = torch.randn_like(features).detach()
    return [
        (tapped_by(StyleDistance), style_formula, gram_matrix(other)),
        (tapped_by(ContentDistance), content_formula, other),
        (tapped_by(MatchDistance), match_formula, other),
    ]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_taps_have_autograds_gradient(layout, device):
    """Gradients are equal from the loss, from the features passed through, and from both."""
    x = images(layout, 1, 3, 4, 5, device=device)
    for tap, formula, target in targets(x):
        tapped, loss = tap(x, target)
        assert tapped.data_ptr() == x.data_ptr()  # no copy
        assert torch.equal(tapped, x)
        torch.testing.assert_close(loss, formula(x, target), rtol=1e-12, atol=0)
        weight = torch.randn_like(x)
        for outputs, expected in (
            ([loss], [formula(x, target)]),
            ([tapped], [x * 1]),
            ([tapped, loss], [x * 1, formula(x, target)]),
        ):
            directions = [weight if output is tapped else 7 * weight.sum() for output in outputs]
            (ours,) = torch.autograd.grad(outputs, x, directions, retain_graph=True)
            (theirs,) = torch.autograd.grad(expected, x, directions)
            assert (ours - theirs).norm() <= 1e-12 * theirs.norm()
            if layout != "strided":
                assert ours.stride() == x.stride()


def test_an_unused_output_of_the_moments_tap_adds_nothing():
    """No zeros are added, because zero times an infinite feature is NaN."""
    x = leaf(1, 3, 4, 5).detach()
    x[0, 0, 0, 0] = float("inf")
    _, mean, _ = MomentsTap.apply(x.requires_grad_(), True, None)
    (gradient,) = torch.autograd.grad(mean.sum(), x)
    assert torch.equal(gradient, torch.full_like(x, 1 / 20))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_moments_tap_has_autograds_gradient(layout, weighted, device):
    """Each output alone, some and all of them are used; with weights of positions and without."""
    x = images(layout, 1, 3, 4, 5, device=device)
    weights = torch.rand(4, 5, device=device, dtype=x.dtype).round(decimals=1) if weighted else None
    tapped, *ours = MomentsTap.apply(x, True, weights)
    theirs = moments(x, weights=weights)
    directions = [torch.randn_like(output) for output in (tapped, *ours)]

    def slope(outputs, used):
        joined = sum((outputs[index].sin() * directions[index]).sum() for index in used)
        return torch.autograd.grad(joined, x, retain_graph=True)[0]

    torch.testing.assert_close(ours, [*theirs], rtol=1e-12, atol=0)
    for used in ({0}, {1}, {2}, {1, 2}, {0, 1}, {0, 2}, {0, 1, 2}):
        actual, expected = slope((tapped, *ours), used), slope((x, *theirs), used)
        torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-15)
        if layout == "channels_last":
            assert actual.stride() == x.stride()


def test_moments_tap_saves_nothing_but_the_features():
    x = leaf(1, 3, 4, 5)
    _, _, second = MomentsTap.apply(x, True, None)
    (saved,) = second.grad_fn.saved_tensors
    assert saved.data_ptr() == x.data_ptr()


def test_weighted_moments_are_the_formula():
    """Some weights are 0; the moments of bfloat16 features are float32."""
    x, m = leaf(1, 3, 4, 5).detach(), torch.linspace(-1, 1, 20).clamp(0).view(4, 5).double()
    f, w = x[0].flatten(1), m.flatten() / m.sum()
    mean, second = moments(x, weights=m)
    torch.testing.assert_close(mean, f @ w, rtol=1e-12, atol=1e-15)
    torch.testing.assert_close(second, (f * w) @ f.T, rtol=1e-12, atol=1e-15)
    low = moments(x.bfloat16(), weights=m)
    assert low.mean.dtype == low.second.dtype == torch.float32
    torch.testing.assert_close(low.second.double(), second, rtol=0.02, atol=0.02)


def test_bfloat16_is_summed_in_float32():
    """The covariance, 1, is a difference of values near 100; bfloat16 products are 0.4 off."""
    x = (torch.randn(1, 3, 40, 50) + 10).bfloat16()
    mean, second = moments(x)
    flat = x[0].flatten(1).double()
    assert mean.dtype == second.dtype == torch.float32
    covariance = second.double() - mean.double()[:, None] * mean.double()
    torch.testing.assert_close(covariance, flat.cov(correction=0), rtol=1e-3, atol=1e-3)
    # The Gram matrix is summed in float32, too: 512 + 7, which bfloat16 would round to 520.
    ones = torch.zeros(1, 1, 64, 64).bfloat16()
    ones[..., :8, :] = ones[..., ::8, 0] = 1
    assert gram_matrix(ones).item() == 519 / 64**2


def test_a_later_inplace_operation_cannot_silently_change_a_tap():
    x = leaf(1, 3, 4, 5) * 1
    for tap, _, target in targets(x):
        tapped, _ = tap(x, target)
        with pytest.raises(RuntimeError, match="modified inplace"):
            tapped.relu_()


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_taps_never_wait_for_the_gpu(dtype):
    x = leaf(1, 3, 4, 5, device="cuda", dtype=dtype)
    chosen = targets(x)
    try:
        # The first call says that the mode is a prototype.
        with warnings.catch_warnings(action="ignore"):
            torch.cuda.set_sync_debug_mode("error")
        for tap, _, target in chosen:
            tapped, loss = tap(x, target)
            torch.autograd.grad(tapped.sum() + loss, x)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_wrap_pad_equals_torch_and_keeps_the_layout(layout, device):
    for size in ((4, 6), (1, 3)):
        x = images(layout, 1, 3, *size, device=device)
        padded = wrap_pad(x)
        assert_same(padded, nn.functional.pad(x, (1, 1, 1, 1), mode="circular"), [x])
    low = torch.randn(1, 3, 6, 4).bfloat16().contiguous(memory_format=torch.channels_last)
    padded = wrap_pad(low.requires_grad_())
    (slope,) = torch.autograd.grad(padded, low, torch.ones_like(padded))
    for kept in (padded, slope):
        assert kept.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_max_pool_equals_torch(layout, device):
    """Sizes may be odd, and values may be equal."""
    for size in ((4, 6), (5, 7), (2, 3)):
        x = images(layout, 2, 3, *size, device=device)
        assert_same(pooled := max_pool(x), torch.max_pool2d(x, 2), [x])
        assert [saved is x for saved in pooled.grad_fn.saved_tensors] == [True]
        assert torch.equal(MaxPool()(x), max_pool(x))
    ties = torch.randint(0, 2, (2, 5, 6, 6)).double().requires_grad_()
    assert_same(max_pool(ties), torch.max_pool2d(ties, 2), [ties])
    low = torch.randn(1, 3, 6, 4).bfloat16().contiguous(memory_format=torch.channels_last)
    pooled = max_pool(low.requires_grad_())
    for kept in (pooled, *torch.autograd.grad(pooled.sum(), low)):
        assert kept.dtype == torch.bfloat16
        assert kept.is_contiguous(memory_format=torch.channels_last)


def test_bad_input_names_both_sides():
    zeros = torch.zeros
    f = zeros(1, 3, 2, 2)
    for function, arguments, words in (
        (gram_matrix, (zeros(2, 3, 4, 4),), r"\(1, C, H, W\) .* \(2, 3, 4, 4\)"),
        (moments, (zeros(1, 3, 0, 4),), r"\(1, 3, 0, 4\)"),
        (MomentsTap.apply, (f[0], True, None), r"\(1, C, H, W\) .* \(3, 2, 2\)"),
        (tapped_by(ContentDistance), (f, zeros(1, 3, 2, 1)), r"\(1, 3, 2, 2\) .* \(1, 3, 2, 1\)"),
        (tapped_by(MatchDistance), (f, zeros(1, 3, 2, 1)), r"\(1, 3, 2, 2\) .* \(1, 3, 2, 1\)"),
    ):
        with pytest.raises(ValueError, match=words):
            function(*arguments)
