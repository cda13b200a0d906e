"""What the tests of hand-written Functions share: tensors in every layout, and comparisons."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.func import grad, jacrev, vmap

# Bad input: a function, its arguments, the error, and words of its message.
Bad = tuple[Callable, tuple, type[Exception], list[str]]
LAYOUTS = ["contiguous", "channels_last", "strided"]


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


def check_torch_func(ours: Callable, theirs: Callable, shape: tuple[int, ...]) -> None:
    """Both agree under vmap, jacrev and grad, and twice over."""
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


def check_bad_input(
    function: Callable, arguments: tuple, error: type[Exception], words: list[str]
) -> None:
    """The error is of this kind, and its message holds every word."""
    with pytest.raises(error) as caught:
        function(*arguments)
    for word in words:
        assert word in str(caught.value)
