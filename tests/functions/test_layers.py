"""The Functions of a network's layers against the built-in operation that each stands for."""

import pytest
import torch
from comparing import LAYOUTS, assert_same, images, leaf
from torch import nn

from styletransfer.functions import MaxPool, max_pool, transform_kernels, winograd_conv

pytestmark = pytest.mark.usefixtures("seeded")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_max_pool_equals_torch(layout: str, device: str) -> None:
    """Also where rows and columns are left over, and where values are equal."""
    for size in ((4, 6), (5, 7), (2, 3)):
        x = images(layout, 2, 3, *size, device=device)
        assert_same(max_pool(x), torch.max_pool2d(x, 2), [x])
        assert [saved is x for saved in max_pool(x).grad_fn.saved_tensors] == [True]
        assert torch.equal(MaxPool()(x), max_pool(x))
    ties = torch.randint(0, 2, (2, 5, 6, 6)).double().requires_grad_()
    assert_same(max_pool(ties), torch.max_pool2d(ties, 2), [ties])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_max_pool_keeps_dtype_and_channels_last(dtype: torch.dtype) -> None:
    x = torch.randn(1, 3, 6, 4).to(dtype).contiguous(memory_format=torch.channels_last)
    y = max_pool(x.requires_grad_())
    (gradient,) = torch.autograd.grad(y.sum(), x)
    assert y.dtype == gradient.dtype == dtype
    assert y.is_contiguous(memory_format=torch.channels_last)
    assert gradient.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("size", [(1, 1), (4, 8), (5, 6), (7, 3), (30, 130)])
def test_winograd_conv_equals_torch(layout: str, size: tuple[int, int], device: str) -> None:
    # 30 x 130 takes several strips of tiles, the last of them shorter.
    x, weight = images(layout, 1, 3, *size, device=device), leaf(4, 3, 3, 3, device=device).detach()
    kernels = transform_kernels(weight)
    for bias in (leaf(4, device=device).detach(), None):
        ours = winograd_conv(x, kernels, bias)
        theirs = nn.functional.conv2d(x, weight, bias, padding=1)
        assert ours.is_contiguous(memory_format=torch.channels_last)
        assert [saved is kernels for saved in ours.grad_fn.saved_tensors] == [True]
        # Later layers may change it in place.
        outputs, direction = [y.relu_() for y in (ours, theirs)], torch.randn_like(theirs)
        torch.testing.assert_close(*outputs, rtol=1e-11, atol=1e-11)
        slopes = [torch.autograd.grad(y, x, direction) for y in outputs]
        torch.testing.assert_close(*slopes, rtol=1e-11, atol=1e-11)


def test_winograd_conv_in_float32_is_close() -> None:
    x, weight = leaf(1, 32, 20, 20), leaf(32, 32, 3, 3).detach()
    exact = nn.functional.conv2d(x, weight, padding=1)
    ours = winograd_conv(x.float(), transform_kernels(weight.float())).double()
    assert (ours - exact).norm() < 1e-5 * exact.norm()
