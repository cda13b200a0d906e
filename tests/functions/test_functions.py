"""Every Function against the one-line formula or the built-in operation that it stands for."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.func import grad, jacrev, vmap

from styletransfer.functions import (
    MaxPool,
    content_tap,
    gram_matrix,
    max_pool,
    moments_tap,
    transform_kernels,
    winograd_conv,
)
from styletransfer.functions.moments import moments
from styletransfer.lessons import (
    GlobalMaxPool,
    Linear,
    ReLU,
    Scale,
    global_max_pool,
    linear,
    relu,
    scale,
)
from styletransfer.losses import GRAM

DEVICES = [
    "cpu",
    pytest.param(
        "cuda",
        marks=[
            pytest.mark.cuda,
            pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
        ],
    ),
]
LAYOUTS = ["contiguous", "channels_last", "strided"]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def leaf(*shape: int, device: str = "cpu", dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, device=device, dtype=dtype).requires_grad_()


def images(layout: str, *shape: int, device: str = "cpu") -> Tensor:
    """A leaf (N, C, H, W) in the given memory layout."""
    x = torch.randn(*shape, device=device, dtype=torch.float64)
    if layout == "channels_last":
        x = x.contiguous(memory_format=torch.channels_last)
    if layout == "strided":
        x = x.repeat_interleave(2, dim=3)[..., ::2]
        assert not x.is_contiguous()
    return x.requires_grad_()


def assert_same(ours: object, theirs: object, leaves: list[Tensor]) -> None:
    """Equal values, and equal gradients after one random direction."""
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-14)
    direction = torch.randn_like(theirs)
    torch.testing.assert_close(
        torch.autograd.grad(ours, leaves, direction, retain_graph=True),
        torch.autograd.grad(theirs, leaves, direction, retain_graph=True),
        rtol=1e-12,
        atol=1e-14,
    )


# --- relu ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_relu_equals_torch(layout: str, device: str) -> None:
    x = images(layout, 2, 3, 4, 5, device=device)
    assert_same(relu(x), torch.relu(x), [x])
    assert relu(x).stride() == torch.relu(x).stride()


def test_relu_at_zero_nan_and_infinite_gradient_as_torch() -> None:
    x = torch.tensor([0.0, -0.0, float("nan"), -1.0, 2.0], requires_grad=True)
    direction = torch.tensor([1.0, 1.0, 1.0, float("inf"), float("inf")])
    (ours,) = torch.autograd.grad(relu(x), x, direction)
    (theirs,) = torch.autograd.grad(torch.relu(x), x, direction)
    assert ours.tolist() == theirs.tolist() == [0, 0, 1, 0, float("inf")]


# --- scale --------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight_shape", [(), (4,), (1, 4), (3, 1), (3, 4), (2, 3, 4)])
def test_scale_equals_product(weight_shape: tuple[int, ...], device: str) -> None:
    x, weight = leaf(2, 3, 4, device=device), leaf(*weight_shape, device=device)
    assert_same(scale(x, weight), x * weight, [x, weight])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_scale_of_images(layout: str) -> None:
    x, weight = images(layout, 2, 3, 4, 5), leaf(3, 1, 1)
    assert_same(scale(x, weight), x * weight, [x, weight])


def test_scale_between_linear_layers_receives_the_chain_rules_product() -> None:
    x, weight, after = leaf(4, 3).detach(), leaf(3), leaf(2, 3).detach()
    scale(x, weight).matmul(after.T).sum().backward()
    assert torch.allclose(weight.grad, (after.sum(0) * x).sum(0))


# --- linear -------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3,), (4, 3), (2, 4, 3), (0, 3), (2, 0, 3)])
@pytest.mark.parametrize("with_bias", [True, False])
def test_linear_equals_torch(shape: tuple[int, ...], with_bias: bool, device: str) -> None:
    x, weight = leaf(*shape, device=device), leaf(2, 3, device=device)
    bias = leaf(2, device=device) if with_bias else None
    leaves = [x, weight] if bias is None else [x, weight, bias]
    assert_same(linear(x, weight, bias), nn.functional.linear(x, weight, bias), leaves)


def test_linear_of_transposed_inputs() -> None:
    x, weight = leaf(3, 4), leaf(3, 2)
    assert_same(linear(x.T, weight.T), x.T @ weight, [x, weight])


@pytest.mark.parametrize("due", [(True, False, False), (False, True, False), (False, False, True)])
def test_linear_computes_and_saves_only_what_is_due(due: tuple[bool, bool, bool]) -> None:
    tensors = [leaf(4, 3), leaf(2, 3), leaf(2)]
    for tensor, needed in zip(tensors, due, strict=True):
        tensor.requires_grad_(needed)
    output = linear(*tensors)
    saved_x, saved_weight = output.grad_fn.saved_tensors
    assert (saved_x is not None) == due[1]
    assert (saved_weight is not None) == due[0]
    output.sum().backward()
    assert [tensor.grad is not None for tensor in tensors] == list(due)


def test_nothing_is_recorded_when_nothing_requires_grad() -> None:
    x = leaf(1, 3, 3, 3).detach()
    results = [relu(x), scale(x, x), linear(x, x[0, 0]), *global_max_pool(x), max_pool(x)]
    results += [*gram_tap(x, gram_matrix(x)), *content_tap(x, x)]
    results += [winograd_conv(x, transform_kernels(leaf(2, 3, 3, 3).detach()))]
    assert not any(result.requires_grad for result in results)


# --- max pooling --------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("size", [(4, 6), (5, 7), (2, 3)])
def test_max_pool_equals_torch(layout: str, size: tuple[int, int], device: str) -> None:
    x = images(layout, 2, 3, *size, device=device)
    assert_same(max_pool(x), torch.max_pool2d(x, 2), [x])


def test_max_pool_gives_a_tie_to_the_first_position_as_torch() -> None:
    x = torch.randint(0, 2, (2, 5, 6, 6)).double().requires_grad_()
    assert_same(max_pool(x), torch.max_pool2d(x, 2), [x])


def test_max_pool_keeps_only_its_input() -> None:
    x = leaf(1, 3, 4, 4)
    assert [kept is x for kept in max_pool(x).grad_fn.saved_tensors] == [True]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_max_pool_keeps_dtype_and_channels_last(dtype: torch.dtype) -> None:
    x = torch.randn(1, 3, 6, 4).to(dtype).contiguous(memory_format=torch.channels_last)
    y = max_pool(x.requires_grad_())
    (gradient,) = torch.autograd.grad(y.sum(), x)
    assert y.dtype == gradient.dtype == dtype
    assert y.is_contiguous(memory_format=torch.channels_last)
    assert gradient.is_contiguous(memory_format=torch.channels_last)


# --- Winograd's convolution ---------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("size", [(1, 1), (4, 8), (5, 6), (7, 3), (30, 130)])
@pytest.mark.parametrize("with_bias", [True, False])
def test_winograd_conv_equals_torch(
    layout: str, size: tuple[int, int], with_bias: bool, device: str
) -> None:
    # 30 x 130 takes several strips of tiles, the last of them shorter.
    x, weight = images(layout, 1, 3, *size, device=device), leaf(4, 3, 3, 3, device=device).detach()
    bias = leaf(4, device=device).detach() if with_bias else None
    ours = winograd_conv(x, transform_kernels(weight), bias)
    theirs = nn.functional.conv2d(x, weight, bias, padding=1)
    torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-11)
    direction = torch.randn_like(theirs)
    torch.testing.assert_close(
        torch.autograd.grad(ours, x, direction),
        torch.autograd.grad(theirs, x, direction),
        rtol=1e-11,
        atol=1e-11,
    )


@pytest.mark.parametrize("size", [(8, 8), (7, 9), (30, 130)])
def test_winograd_conv_is_channels_last_and_may_be_changed_in_place(size: tuple[int, int]) -> None:
    x, weight = leaf(1, 3, *size), leaf(4, 3, 3, 3).detach()
    y = winograd_conv(x, transform_kernels(weight))
    assert y.is_contiguous(memory_format=torch.channels_last)
    y.relu_().sum().backward()
    expected = torch.relu(nn.functional.conv2d(x, weight, padding=1))
    torch.testing.assert_close(x.grad, torch.autograd.grad(expected.sum(), x)[0])


def test_winograd_conv_keeps_its_kernels_alone() -> None:
    kernels = transform_kernels(leaf(4, 3, 3, 3).detach())
    (kept,) = winograd_conv(leaf(1, 3, 4, 4), kernels).grad_fn.saved_tensors
    assert kept is kernels


def test_winograd_conv_in_float32_is_close() -> None:
    x, weight = leaf(1, 32, 20, 20), leaf(32, 32, 3, 3).detach()
    exact = nn.functional.conv2d(x, weight, padding=1)
    ours = winograd_conv(x.float(), transform_kernels(weight.float())).double()
    assert (ours - exact).norm() < 1e-5 * exact.norm()


# --- global max pooling -------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_pool_equals_amax(layout: str, device: str) -> None:
    x = images(layout, 2, 3, 4, 5, device=device)
    values, indices = global_max_pool(x)
    assert_same(values, x.amax((2, 3)), [x])
    assert torch.equal(indices, x.flatten(2).argmax(2))


def test_pool_gives_a_tie_to_the_first_position_alone() -> None:
    x = torch.tensor([[[[1.0, 5.0], [5.0, 5.0]]]], requires_grad=True)
    values, indices = global_max_pool(x)
    values.sum().backward()
    assert indices.tolist() == [[1]]
    assert x.grad.flatten().tolist() == [0, 1, 0, 0]


def test_pool_indices_are_not_differentiable() -> None:
    values, indices = global_max_pool(leaf(2, 3, 4))
    assert values.requires_grad
    assert indices.dtype == torch.int64
    assert not indices.requires_grad


def test_pool_of_an_empty_batch() -> None:
    x = leaf(0, 3, 2, 2)
    values, indices = global_max_pool(x)
    values.sum().backward()
    assert values.shape == indices.shape == (0, 3)
    assert x.grad.shape == x.shape


def test_pool_gradient_keeps_channels_last() -> None:
    x = images("channels_last", 2, 3, 4, 5)
    (result,) = torch.autograd.grad(global_max_pool(x)[0].sum(), x)
    assert result.is_contiguous(memory_format=torch.channels_last)


# --- gram matrix and taps -----------------------------------------------------------------------


def style_formula(features: Tensor, target: Tensor) -> Tensor:
    f = features.flatten(2)[0]
    return (f @ f.T / f.numel() - target).square().mean()


def gram_tap(features: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """The Gram loss on the moments tap, as loss_mode=autograd_function has it."""
    tapped, found = moments_tap(features, with_mean=False)
    return tapped, GRAM.loss(found, target)


def content_formula(features: Tensor, target: Tensor) -> Tensor:
    return (features - target).square().mean()


def targets(features: Tensor) -> list[tuple[Callable, Callable, Tensor]]:
    """Both taps with their formula and a target that fits the features."""
    other = torch.randn_like(features)
    gram = gram_matrix(other.detach())
    return [(gram_tap, style_formula, gram), (content_tap, content_formula, other.detach())]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gram_matrix_is_the_formula(layout: str, device: str) -> None:
    x = images(layout, 1, 3, 4, 5, device=device)
    f = x.flatten(2)[0]
    assert_same(gram_matrix(x), f @ f.T / 60, [x])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("used", ["loss", "features", "both"])
def test_taps_have_autograds_gradient(layout: str, used: str, device: str) -> None:
    x = images(layout, 1, 3, 4, 5, device=device)
    for tap, formula, target in targets(x):
        tapped, loss = tap(x, target)
        weight = torch.randn_like(x)
        below = (tapped.sin() * weight).sum() if used != "loss" else 0
        expected = (x.sin() * weight).sum() if used != "loss" else 0
        if used != "features":
            torch.testing.assert_close(loss, formula(x, target), rtol=1e-12, atol=0)
            below, expected = below + 7 * loss, expected + 7 * formula(x, target)
        (ours,) = torch.autograd.grad(below, x)
        (theirs,) = torch.autograd.grad(expected, x)
        assert (ours - theirs).norm() <= 1e-12 * theirs.norm()
        if layout != "strided":
            assert ours.stride() == x.stride()


def test_taps_differentiate_their_targets_too() -> None:
    x = leaf(1, 3, 4, 5)
    for tap, formula, target in targets(x):
        target.requires_grad_()
        (ours,) = torch.autograd.grad(tap(x, target)[1], target)
        (theirs,) = torch.autograd.grad(formula(x, target), target)
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-15)


def test_taps_pass_features_on_without_a_copy() -> None:
    x = leaf(1, 3, 4, 5)
    for tap, _, target in targets(x):
        tapped, _ = tap(x, target)
        assert tapped.data_ptr() == x.data_ptr()
        assert torch.equal(tapped, x)


def test_an_unused_output_of_the_moments_tap_adds_nothing() -> None:
    """Not even zeros, which an infinite feature would turn into NaN."""
    x = leaf(1, 3, 4, 5).detach()
    x[0, 0, 0, 0] = float("inf")
    _, (mean, _) = moments_tap(x.requires_grad_())
    (gradient,) = torch.autograd.grad(mean.sum(), x)
    assert torch.equal(gradient, torch.full_like(x, 1 / 20))


def test_an_empty_mean_has_no_gradient() -> None:
    x = leaf(1, 3, 4, 5)
    _, (mean, second) = moments_tap(x, with_mean=False)
    (ours,) = torch.autograd.grad(mean.sum() + second.sum(), x)
    (theirs,) = torch.autograd.grad(moments(x).second.sum(), x)
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=0)


def test_moments_tap_saves_nothing_but_the_features() -> None:
    x = leaf(1, 3, 4, 5)
    _, (_, second) = moments_tap(x)
    (saved,) = second.grad_fn.saved_tensors
    assert saved.data_ptr() == x.data_ptr()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("used", [{0}, {1}, {2}, {1, 2}, {0, 1}, {0, 2}, {0, 1, 2}])
def test_moments_tap_has_autograds_gradient(layout: str, used: set[int], device: str) -> None:
    x = images(layout, 1, 3, 4, 5, device=device)
    tapped, ours = moments_tap(x)
    directions = [torch.randn_like(each) for each in (tapped, *ours)]

    def joined(outputs: tuple[Tensor, ...]) -> Tensor:
        return sum((outputs[index].sin() * directions[index]).sum() for index in used)

    torch.testing.assert_close(ours, moments(x), rtol=1e-12, atol=0)
    (actual,) = torch.autograd.grad(joined((tapped, *ours)), x)
    (expected,) = torch.autograd.grad(joined((x, *moments(x))), x)
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-15)
    if layout != "strided":
        assert actual.stride() == x.stride()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_with_a_mean_low_precision_is_summed_in_float32(dtype: torch.dtype) -> None:
    """A covariance is a small difference: 1 of 100 here, and products in bfloat16 are 0.4 off."""
    x = (torch.randn(1, 3, 40, 50) + 10).to(dtype)
    mean, second = moments(x)
    flat = x[0].flatten(1).double()
    assert mean.dtype == second.dtype == torch.float32
    covariance = second.double() - mean.double()[:, None] * mean.double()
    torch.testing.assert_close(covariance, flat.cov(correction=0), rtol=1e-3, atol=1e-3)


def test_a_later_inplace_operation_cannot_silently_change_a_tap() -> None:
    x = leaf(1, 3, 4, 5) * 1
    for tap, _, target in targets(x):
        tapped, _ = tap(x, target)
        with pytest.raises(RuntimeError, match="modified inplace"):
            tapped.relu_()


def test_taps_at_their_minimum() -> None:
    x = leaf(1, 3, 4, 5)
    for tap, target in ((gram_tap, gram_matrix(x.detach())), (content_tap, x.detach().clone())):
        _, loss = tap(x, target)
        (gradient,) = torch.autograd.grad(loss, x)
        assert loss.item() == 0
        assert torch.equal(gradient, torch.zeros_like(x))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("size", [(9, 11), (2, 2)])
def test_taps_in_low_precision_stay_close(
    dtype: torch.dtype, layout: str, size: tuple[int, int], device: str
) -> None:
    x = images(layout, 1, 8, *size, device=device).detach().to(dtype).requires_grad_()
    exact = x.detach().double().requires_grad_()
    direction = torch.randn_like(x) * 1e-3
    for tap, formula, target in targets(x):
        tapped, loss = tap(x, target)
        expected = formula(exact, target.double())
        assert loss.dtype == torch.float32
        assert loss.item() == pytest.approx(expected.item(), rel=0.01)
        (ours,) = torch.autograd.grad((tapped, loss), x, (direction, torch.ones_like(loss)))
        (theirs,) = torch.autograd.grad(expected, exact)
        theirs = theirs + direction.double()
        assert ours.dtype == dtype
        assert (ours.double() - theirs).norm() <= 0.01 * theirs.norm()


def test_float16_overflows_neither_sums_nor_gradients() -> None:
    x = torch.full((1, 4, 64, 64), 100.0, dtype=torch.float16, requires_grad=True)
    _, loss = gram_tap(x, torch.zeros(4, 4))
    loss.backward()
    # Every entry of G is 100^2 / 4 = 2500, and (G F) sums 4 channels of 2500 * 100.
    assert loss.item() == pytest.approx(2500.0**2, rel=1e-3)
    assert x.grad.float() == pytest.approx(4 / (4**2 * 4 * 64**2) * 4 * 2500 * 100, rel=1e-3)


def test_float16_gradients_outlive_coefficients_below_its_smallest_number() -> None:
    """float16 ends at 6e-8; the coefficients here are 1e-8 and 5e-9, the gradients are not."""
    x = torch.full((1, 4, 64, 64), 2000.0, dtype=torch.float16, requires_grad=True)
    _, loss = content_tap(x, torch.zeros_like(x))
    (gradient,) = torch.autograd.grad(loss * 1e-4, x)
    assert gradient.float() == pytest.approx(2e-4 / (4 * 64**2) * 2000, rel=0.01)
    _, (_, second) = moments_tap(x, with_mean=False)
    (gradient,) = torch.autograd.grad(second.sum() * 1e-5, x)
    assert gradient.float() == pytest.approx(2e-5 / 64**2 * 4 * 2000, rel=0.01)


def test_gram_matrix_of_one_constant_map_in_bfloat16_sums_in_float32() -> None:
    x = torch.ones(1, 2, 61, 67, dtype=torch.bfloat16)
    assert gram_matrix(x).dtype == torch.float32
    assert gram_matrix(x) == pytest.approx(0.5, rel=1e-6)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_taps_never_wait_for_the_gpu(dtype: torch.dtype) -> None:
    x = leaf(1, 3, 4, 5, device="cuda", dtype=dtype)
    chosen = targets(x)
    torch.cuda.set_sync_debug_mode("error")
    try:
        for tap, _, target in chosen:
            tapped, loss = tap(x, target)
            torch.autograd.grad(tapped.sum() + loss, x)
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_autocast_changes_no_dtype() -> None:
    x, weight = leaf(1, 3, 4, 4, dtype=torch.float32), leaf(2, 4, dtype=torch.float32)
    target, kernels = torch.eye(3), transform_kernels(leaf(2, 3, 3, 3).detach().float())

    def results() -> list[Tensor]:
        taps = [gram_tap(x, target)[1], gram_matrix(x)]
        return [*taps, linear(x, weight), winograd_conv(x, kernels)]

    with torch.autocast("cpu", torch.bfloat16):
        inside = results()
    outside = results()
    for ours, expected in zip(inside, outside, strict=True):
        assert_same(ours, expected, [x])


# --- torch.func ---------------------------------------------------------------------------------

WEIGHT = torch.linspace(-1, 1, 6, dtype=torch.float64).view(2, 3)
CONV_WEIGHT = torch.linspace(-1, 1, 54, dtype=torch.float64).view(2, 3, 3, 3)
FUNCTIONS = {
    "relu": (relu, torch.relu, (4, 3)),
    "scale": (lambda x: scale(x, WEIGHT[0]), lambda x: x * WEIGHT[0], (4, 3)),
    "linear": (lambda x: linear(x, WEIGHT), lambda x: x @ WEIGHT.T, (4, 3)),
    "winograd": (
        lambda x: winograd_conv(x, transform_kernels(CONV_WEIGHT)),
        lambda x: nn.functional.conv2d(x, CONV_WEIGHT, padding=1),
        (1, 3, 2, 5),
    ),
    "max_pool": (max_pool, lambda x: torch.max_pool2d(x, 2), (2, 3, 2, 4)),
    "pool": (lambda x: global_max_pool(x)[0], lambda x: x.flatten(2).amax(2), (2, 3, 2, 2)),
    "style": (
        lambda x: gram_tap(x, torch.eye(3, dtype=x.dtype))[1],
        lambda x: style_formula(x, torch.eye(3, dtype=x.dtype)),
        (1, 3, 2, 4),
    ),
    "content": (
        lambda x: content_tap(x, torch.ones(1, 3, 2, 4, dtype=x.dtype))[1],
        lambda x: (x - 1).square().mean(),
        (1, 3, 2, 4),
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_torch_func_transforms(name: str) -> None:
    ours, theirs, shape = FUNCTIONS[name]
    batch = torch.randn(5, *shape, dtype=torch.float64)

    def summed(function: Callable) -> Callable:
        return lambda x: function(x).square().sum()

    expected = torch.stack([theirs(x) for x in batch])
    torch.testing.assert_close(vmap(ours)(batch), expected)
    torch.testing.assert_close(jacrev(ours)(batch[0]), jacrev(theirs)(batch[0]))
    torch.testing.assert_close(
        vmap(grad(summed(ours)))(batch),
        torch.stack([grad(summed(theirs))(x) for x in batch]),
    )
    torch.testing.assert_close(
        jacrev(jacrev(summed(ours)))(batch[0]), jacrev(jacrev(summed(theirs)))(batch[0])
    )


# --- modules ------------------------------------------------------------------------------------


def test_linear_module_starts_as_torchs() -> None:
    torch.manual_seed(3)
    ours = Linear(5, 4)
    torch.manual_seed(3)
    theirs = nn.Linear(5, 4)
    assert ours.state_dict().keys() == theirs.state_dict().keys()
    for name, parameter in theirs.state_dict().items():
        assert torch.equal(ours.state_dict()[name], parameter)
    assert repr(ours) == repr(theirs)


def test_modules_are_their_functions() -> None:
    x = leaf(2, 3, 4, dtype=torch.float32)
    layer, unbiased, scaled = Linear(4, 2), Linear(4, 2, bias=False), Scale(3, 1)
    assert torch.equal(ReLU()(x), relu(x))
    assert torch.equal(MaxPool()(x[None]), max_pool(x[None]))
    assert torch.equal(layer(x), linear(x, layer.weight, layer.bias))
    assert unbiased.bias is None
    assert torch.equal(unbiased(x), linear(x, unbiased.weight))
    assert torch.equal(scaled(x), x)
    assert repr(scaled) == "Scale(3, 1)"
    assert all(
        torch.equal(*pair) for pair in zip(GlobalMaxPool()(x), global_max_pool(x), strict=True)
    )


# --- bad input ----------------------------------------------------------------------------------

F = torch.zeros(1, 3, 2, 2)
K = torch.zeros(6, 6, 4, 3)
BAD: list[tuple[Callable, tuple, type[Exception], list[str]]] = [
    (relu, (torch.ones(2, dtype=torch.int64),), TypeError, ["int64", "x.float()"]),
    (relu, (torch.ones(2, dtype=torch.complex64),), TypeError, ["complex64"]),
    (relu, ([1.0],), TypeError, ["list"]),
    (scale, (F, F.int()), TypeError, ["weight", "int32"]),
    (scale, (F, F.double()), TypeError, ["float32", "float64"]),
    (scale, (F, torch.zeros(4)), ValueError, ["(4,)", "(1, 3, 2, 2)"]),
    (scale, (torch.zeros(3), torch.zeros(2, 3)), ValueError, ["(2, 3)", "(3,)"]),
    (scale, (F, F.to("meta")), ValueError, ["cpu", "meta"]),
    (linear, (torch.zeros(4, 3), torch.zeros(3, 4)), ValueError, ["(4, 3)", "(3, 4)"]),
    (linear, (torch.zeros(()), torch.zeros(3, 4)), ValueError, ["()", "(3, 4)"]),
    (linear, (torch.zeros(3), torch.zeros(3)), ValueError, ["(outputs, inputs)"]),
    (
        linear,
        (torch.zeros(3), torch.zeros(2, 3), torch.zeros(3)),
        ValueError,
        ["(2, 3)", "(2,)", "(3,)"],
    ),
    (
        linear,
        (torch.zeros(3), torch.zeros(2, 3), torch.zeros(2).half()),
        TypeError,
        ["float32", "bias", "float16"],
    ),
    (global_max_pool, (torch.zeros(2, 3),), ValueError, ["(N, C, ...)", "(2, 3)"]),
    (global_max_pool, (torch.zeros(2, 3, 0),), ValueError, ["(2, 3, 0)"]),
    (max_pool, (torch.zeros(3, 2, 2),), ValueError, ["(N, C, H, W)", "(3, 2, 2)"]),
    (max_pool, (torch.zeros(1, 3, 1, 2),), ValueError, ["at least 2", "(1, 3, 1, 2)"]),
    (max_pool, (F.int(),), TypeError, ["int32"]),
    (winograd_conv, (F, torch.zeros(6, 6, 3, 4)), ValueError, ["(1, 3, 2, 2)", "(6, 6, 3, 4)"]),
    (winograd_conv, (F, torch.zeros(3, 3, 3, 3)), ValueError, ["(6, 6, K, C)"]),
    (winograd_conv, (F, K, torch.zeros(3)), ValueError, ["(4,)", "(3,)"]),
    (winograd_conv, (F, K.double()), TypeError, ["float32", "float64"]),
    (winograd_conv, (F, K.clone().requires_grad_()), ValueError, ["constants", "detach"]),
    (transform_kernels, (torch.zeros(4, 3, 5, 5),), ValueError, ["(K, C, 3, 3)", "(4, 3, 5, 5)"]),
    (gram_matrix, (torch.zeros(2, 3, 4, 4),), ValueError, ["(1, C, H, W)", "(2, 3, 4, 4)"]),
    (gram_matrix, (torch.zeros(1, 3, 0, 4),), ValueError, ["(1, 3, 0, 4)"]),
    (gram_matrix, (F.long(),), TypeError, ["int64"]),
    (moments_tap, (F[0],), ValueError, ["(1, C, H, W)", "(3, 2, 2)"]),
    (moments_tap, (F.int(),), TypeError, ["int32"]),
    (moments, (torch.zeros(1, 3, 0, 4),), ValueError, ["(1, 3, 0, 4)"]),
    (content_tap, (F, torch.zeros(1, 3, 2, 3)), ValueError, ["(1, 3, 2, 2)", "(1, 3, 2, 3)"]),
    (content_tap, (F, F.double()), TypeError, ["float32", "float64"]),
    (content_tap, (F[0], F[0]), ValueError, ["(1, C, H, W)", "(3, 2, 2)"]),
    (Linear, (0, 3), ValueError, ["(0, 3)"]),
]


@pytest.mark.parametrize(("function", "arguments", "error", "words"), BAD)
def test_bad_input_names_both_sides(
    function: Callable, arguments: tuple, error: type[Exception], words: list[str]
) -> None:
    with pytest.raises(error) as caught:
        function(*arguments)
    for word in words:
        assert word in str(caught.value)
