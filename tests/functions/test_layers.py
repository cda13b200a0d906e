"""The Functions of a network's layers against the built-in operation that each stands for."""

from collections.abc import Callable

import pytest
import torch
from comparing import LAYOUTS, Bad, assert_same, check_bad_input, check_torch_func, images, leaf
from torch import nn

from styletransfer.functions import MaxPool, max_pool, transform_kernels, winograd_conv

pytestmark = pytest.mark.usefixtures("seeded")


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


def test_max_pool_as_a_module() -> None:
    x = leaf(1, 2, 3, 4)
    assert torch.equal(MaxPool()(x), max_pool(x))


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


def test_nothing_is_recorded_when_nothing_requires_grad() -> None:
    x, kernels = leaf(1, 3, 3, 3).detach(), transform_kernels(leaf(2, 3, 3, 3).detach())
    assert not max_pool(x).requires_grad
    assert not winograd_conv(x, kernels).requires_grad


CONV_WEIGHT = torch.linspace(-1, 1, 54, dtype=torch.float64).view(2, 3, 3, 3)
FUNCTIONS = {
    "winograd": (
        lambda x: winograd_conv(x, transform_kernels(CONV_WEIGHT)),
        lambda x: nn.functional.conv2d(x, CONV_WEIGHT, padding=1),
        (1, 3, 2, 5),
    ),
    "max_pool": (max_pool, lambda x: torch.max_pool2d(x, 2), (2, 3, 2, 4)),
}


@pytest.mark.parametrize(("ours", "theirs", "shape"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_torch_func_transforms(ours: Callable, theirs: Callable, shape: tuple[int, ...]) -> None:
    check_torch_func(ours, theirs, shape)


F = torch.zeros(1, 3, 2, 2)
K = torch.zeros(6, 6, 4, 3)
BAD: list[Bad] = [
    (max_pool, (torch.zeros(3, 2, 2),), ValueError, ["(N, C, H, W)", "(3, 2, 2)"]),
    (max_pool, (torch.zeros(1, 3, 1, 2),), ValueError, ["at least 2", "(1, 3, 1, 2)"]),
    (max_pool, (F.int(),), TypeError, ["int32"]),
    (winograd_conv, (F, torch.zeros(6, 6, 3, 4)), ValueError, ["(1, 3, 2, 2)", "(6, 6, 3, 4)"]),
    (winograd_conv, (F, torch.zeros(3, 3, 3, 3)), ValueError, ["(6, 6, K, C)"]),
    (winograd_conv, (F, K, torch.zeros(3)), ValueError, ["(4,)", "(3,)"]),
    (winograd_conv, (F, K.double()), TypeError, ["float32", "float64"]),
    (winograd_conv, (F, K.clone().requires_grad_()), ValueError, ["constants", "detach"]),
    (transform_kernels, (torch.zeros(4, 3, 5, 5),), ValueError, ["(K, C, 3, 3)", "(4, 3, 5, 5)"]),
]


@pytest.mark.parametrize(("function", "arguments", "error", "words"), BAD)
def test_bad_input_names_both_sides(
    function: Callable, arguments: tuple, error: type[Exception], words: list[str]
) -> None:
    check_bad_input(function, arguments, error, words)
