"""Helpers for tests of hand-written autograd Functions: tensors and comparisons."""

import importlib
import pkgutil

import torch
from torch.autograd import Function

from styletransfer import features, losses, objective

LAYOUTS = ["contiguous", "channels_last", "strided"]


def written_functions():
    """Return name -> class of every torch.autograd.Function that runs use."""
    rooms = (features, losses, objective)
    for room in rooms:
        for module in pkgutil.iter_modules(room.__path__):
            importlib.import_module(f"{room.__name__}.{module.name}")
    names = tuple(room.__name__ for room in rooms)
    kinds = [kind for kind in Function.__subclasses__() if kind.__module__.startswith(names)]
    return {kind.__name__: kind for kind in kinds}


def leaf(*shape, device="cpu", dtype=torch.float64):
    return torch.randn(shape, device=device, dtype=dtype).requires_grad_()


def images(layout, *shape, device="cpu"):
    """Return a random tensor (N, C, H, W) that requires grad, in the given memory layout."""
    x = torch.randn(*shape, device=device, dtype=torch.float64)
    if layout == "channels_last":
        x = x.contiguous(memory_format=torch.channels_last)
    if layout == "strided":
        x = x.repeat_interleave(2, dim=3)[..., ::2]
        assert not x.is_contiguous()
    return x.requires_grad_()


def assert_same(ours, theirs, leaves):
    """Assert equal tensors, and equal gradients of `leaves` for one random upstream gradient."""
    near = {"rtol": 1e-12, "atol": 1e-14}
    torch.testing.assert_close(ours, theirs, **near)
    direction = torch.randn_like(theirs)
    pair = [torch.autograd.grad(x, leaves, direction, retain_graph=True) for x in (ours, theirs)]
    torch.testing.assert_close(*pair, **near)
