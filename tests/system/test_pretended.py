"""The pretended GPU refuses what CUDA refuses, and allows what CUDA allows."""

import numpy as np
import pytest
import torch
from pretended import Pretended
from torch import nn
from torch.nn.functional import interpolate, pad


@pytest.fixture
def x(gpu):
    """Return a tensor (1, 3, 8, 8) of the pretended GPU."""
    return torch.rand(1, 3, 8, 8).to("cuda")


def test_tensors_of_two_devices_do_not_mix(x):
    row, one = torch.ones(8), torch.tensor(1.0)
    for mixed in (
        lambda: x + row,
        lambda: row + x,
        lambda: x @ torch.eye(8),
        lambda: torch.conv2d(x, torch.ones(2, 3, 3, 3)),
        lambda: torch.stack([x.sum(), one]),
        lambda: row.add_(x[0, 0, 0]),
        lambda: one.add_(x.sum()),
        lambda: row[torch.tensor([0, 1], device="cuda")],
        lambda: torch.where(x > 0, x, row),
        lambda: nn.Conv2d(3, 4, 3)(x),
        lambda: torch.cat([x, torch.ones(1, 3, 8, 8)]),
    ):
        with pytest.raises(RuntimeError, match="two devices"):
            mixed()


def test_what_cuda_allows_has_the_values_of_the_cpu(x):
    there = x.cpu()
    for made, wanted in (
        (x + torch.tensor(1.0), there + 1),
        (x[0, 0, torch.tensor([1, 2])], there[0, 0, [1, 2]]),
        (torch.where(x > 0.5, x, 0.0), torch.where(there > 0.5, there, 0.0)),
        (torch.arange(3, device=x.device), torch.arange(3)),
        (torch.tensor([1.0, 2.0], device="cuda"), torch.tensor([1.0, 2.0])),
        (x.new_tensor([1.0]), torch.ones(1)),
        (torch.zeros_like(x).copy_(there), there),
        (torch.ones(2).to(x), torch.ones(2)),
    ):
        assert (type(made), str(made.device)) == (Pretended, "cuda:0")
        assert made.cpu().equal(wanted)
    assert there.clone().mul_(0).copy_(x).equal(there)


def test_a_network_moves_and_differentiates(x):
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
    on_cpu, leaf = x.cpu().requires_grad_(), x.requires_grad_()
    network(on_cpu).square().sum().backward()
    network.to("cuda").to(memory_format=torch.channels_last)
    assert next(network.parameters()).device.type == "cuda"
    network(leaf).square().sum().backward()
    torch.testing.assert_close(leaf.grad.cpu(), on_cpu.grad)
    (back,) = torch.autograd.grad(network(leaf).cpu().sum(), leaf)
    assert back.device.type == "cuda"


def test_arrays_and_generators_stay_on_the_cpu(x):
    own = torch.Generator()
    for made in (x.numpy, lambda: np.asarray(x), lambda: x.normal_(generator=own)):
        with pytest.raises((RuntimeError, TypeError)):
            made()
    with pytest.raises(RuntimeError, match="generator"):
        torch.rand(3, device="cuda", generator=own)


def test_sums_in_any_order_are_refused(x):
    x.requires_grad_()
    for made in (
        lambda: pad(x, (1,) * 4, mode="replicate"),
        lambda: interpolate(x, scale_factor=2, mode="bilinear"),
    ):
        with pytest.raises(RuntimeError, match="other bits"):
            made().sum().backward()


def test_waits_are_counted(x, gpu):
    gpu.clear()
    x.square().sum()
    assert not gpu
    float(x.sum()), x.cpu(), x[x > 2], x.nonzero(), x.tolist(), torch.zeros(1, 3, 8, 8).copy_(x)
    assert gpu == {"_local_scalar_dense": 1, "to the CPU": 3, "nonzero": 2}
