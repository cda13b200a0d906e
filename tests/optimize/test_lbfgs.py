"""L-BFGS: the same path as torch's with one evaluation per step; cases where torch's differs."""

import copy
from functools import partial

import pytest
import torch
from helpers import picture
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from styletransfer.optimize.lbfgs import LBFGS
from styletransfer.optimize.optimizers import Preconditioner


def curved(point):
    """Return a convex loss, 0 at 1, whose quadratic terms have factors from 1 to 6."""
    weights = torch.linspace(1, 6, point.numel(), dtype=point.dtype).view_as(point)
    return (weights * (point - 1).square() + 0.1 * (point - 1) ** 4).sum()


def descend(step, point, objective, steps):
    path = []
    for _ in range(steps):
        point.grad = None
        objective(point).backward()
        step()
        path.append(point.detach().clone())
    return torch.stack(path)


def start(height=2, width=4):
    return torch.zeros(1, 3, height, width, dtype=torch.float64).requires_grad_()


@pytest.mark.parametrize(("history", "rate"), [(1, 1.0), (3, 0.6), (20, 1.0)])
def test_it_goes_torchs_way(history, rate):
    theirs, ours = start(), start()
    first = 0.02
    plain = {"max_iter": 1, "tolerance_grad": 0, "tolerance_change": 0}
    oracle = torch.optim.LBFGS([theirs], lr=first * theirs.numel(), history_size=history, **plain)
    step = partial(oracle.step, lambda: 0.0)  # torch needs a closure; its value decides nothing
    wanted = descend(step, theirs, curved, 1)
    oracle.param_groups[0]["lr"] = rate
    wanted = torch.cat([wanted, descend(step, theirs, curved, 9)])
    optimizer = LBFGS(ours, history=history, rate=rate, first=first)
    found = descend(optimizer.step, ours, curved, 10)
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-12)
    assert len(optimizer.order) == min(history, 9)


@pytest.mark.parametrize("scale", [2.0**-100, 2.0**100])
def test_the_unit_of_the_loss_does_not_matter(scale):
    """torch's absolute tolerances would fail at either scale."""
    one, other = start(), start()
    wanted = descend(LBFGS(one, history=5, rate=1.0, first=0.25).step, one, curved, 8)
    scaled = LBFGS(other, history=5, rate=1.0, first=0.25)
    found = descend(scaled.step, other, lambda point: scale * curved(point), 8)
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-12)
    assert wanted[0].abs().mean().item() == pytest.approx(0.25, rel=1e-12)


def test_a_flat_place_is_not_left():
    point = start()
    optimizer = LBFGS(point, history=5, rate=1.0, first=0.1)
    path = descend(optimizer.step, point, lambda x: 0 * x.sum(), 3)
    assert torch.equal(path, torch.zeros_like(path))


def test_exponent_0_changes_no_coordinates():
    for size in ((16, 20), (15, 21), (1, 7), (8, 1)):
        x = picture(1, *size)
        torch.testing.assert_close(Preconditioner(x, 0.0).apply(x), x)


def recursion(pairs, gradient):
    """Return the step of Nocedal and Wright's algorithm 7.4, for pairs from old to new."""
    step, shares = -gradient, []
    for move, change in reversed(pairs):
        shares.append(move.dot(step) / change.dot(move))
        step = step - shares[-1] * change
    move, change = pairs[-1]
    step = step * (change.dot(move) / change.dot(change))
    for (move, change), share in zip(pairs, reversed(shares), strict=True):
        step = step + (share - change.dot(step) / change.dot(move)) * move
    return step


def follow(optimizer, gradients):
    """Make a step along each gradient (n,); return the steps, (steps, n)."""
    moves = []
    for gradient in gradients:
        before = optimizer.shift.detach().clone()
        optimizer.shift.grad = gradient.view_as(before).clone()
        optimizer.step()
        moves.append((optimizer.shift.detach() - before).flatten())
    return torch.stack(moves)


# Curvatures of the loss in each step: in steps of negative curvature no pair is learnt.
@pytest.mark.parametrize("signs", ["++++++++++", "+-++-+++++", "--++++-+++", "+++++++--+"])
@pytest.mark.parametrize("history", [1, 3, 20])
def test_it_makes_the_recursions_steps(history, signs):
    """After a step of negative curvature all pairs are there, and also the oldest."""
    optimizer = LBFGS(start(8, 8), history=history, rate=0.7, first=0.02)
    weights = torch.linspace(1, 6, 192, dtype=torch.float64)
    gradient, pairs = picture(5, 8, 8).flatten() - 0.5, []
    for sign in signs:
        move = follow(optimizer, [gradient])[0]
        if pairs:
            wanted = 0.7 * recursion(pairs, gradient)
            assert (move - wanted).norm() <= 1e-10 * wanted.norm()
        change = weights * move if sign == "+" else -0.5 * move
        if sign == "+":
            pairs = [*pairs, (move, change)][-history:]
        gradient = gradient + change
    assert len(optimizer.order) == min(history, signs[:-1].count("+"))


def test_a_gradient_in_the_same_memory_is_learnt_from():
    """A caller may compute each gradient in the memory of the last one."""
    options = {"history": 5, "rate": 1.0, "first": 0.25}
    gradients = [picture(n, 2, 4) - n / 4 for n in range(6)]
    wanted, optimizer = LBFGS(start(), **options), LBFGS(start(), **options)
    follow(wanted, gradients)
    optimizer.shift.grad = torch.empty_like(gradients[0])
    for gradient in gradients:
        optimizer.shift.grad.copy_(gradient)
        optimizer.step()
    assert torch.equal(optimizer.shift, wanted.shift)


@pytest.mark.parametrize("steps", range(1, 7))
def test_a_loaded_state_goes_on_with_equal_bits(steps):
    """The third step has negative curvature, and two pairs are kept."""
    gradients = [(-1) ** (n == 3) * (picture(n, 2, 4).flatten() - n / 4) for n in range(9)]
    optimizer = LBFGS(start(), history=2, rate=1.0, first=0.1)
    follow(optimizer, gradients[:steps])
    state, shift = copy.deepcopy(optimizer.state_dict()), optimizer.shift.detach().clone()
    wanted = follow(optimizer, gradients[steps:])
    again = LBFGS(shift.requires_grad_(), history=2, rate=1.0, first=0.1)
    again.load_state_dict(state)
    assert torch.equal(follow(again, gradients[steps:]), wanted)


class OutOfMemory(TorchDispatchMode):
    """Raises an error instead of the operation `number` that makes a tensor of `size` values."""

    def __init__(self, number, size):
        super().__init__()
        self.left, self.size = number, size

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        found = function(*args, **(kwargs or {}))
        is_new = torch.is_tensor(found) and not function._schema.is_mutable and not function.is_view
        if is_new and found.numel() >= self.size:
            self.left -= 1
            if self.left == 0:
                raise torch.OutOfMemoryError("CUDA out of memory")
        return found


def test_a_step_without_memory_is_made_again():
    """It has changed nothing, so the second attempt makes the same step."""
    gradients = [picture(n, 4, 8) - n / 4 for n in range(6)]
    wanted = LBFGS(start(4, 8), history=3, rate=1.0, first=0.1)
    follow(wanted, gradients)
    for number in range(1, 9):
        optimizer, failed = LBFGS(start(4, 8), history=3, rate=1.0, first=0.1), 0
        for gradient in gradients:
            optimizer.shift.grad = gradient.clone()
            try:
                with OutOfMemory(number, gradient.numel()):
                    optimizer.step()
            except torch.OutOfMemoryError:
                failed += 1
                optimizer.shift.grad = gradient.clone()
                optimizer.step()
        assert torch.equal(optimizer.shift, wanted.shift)
        assert failed > 0 or number > 1


class Far(torch.Tensor):
    """A tensor that torch takes for one on another device; `OtherDevice` computes with `near`."""

    @staticmethod
    def __new__(cls, near):
        form = {"dtype": near.dtype, "device": "meta", "strides": near.stride()}
        far = torch.Tensor._make_wrapper_subclass(cls, near.shape, **form)
        far.near = near
        return far

    @classmethod
    def __torch_dispatch__(cls, *given):
        raise AssertionError("a far tensor outside of its device")


class OtherDevice(TorchDispatchMode):
    """Counts in `waits` how often the host waits for a `Far` tensor, or sends values to one."""

    def __init__(self):
        super().__init__()
        self.waits = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        aten, device = torch.ops.aten, str(kwargs.get("device"))
        is_far = device == "meta" or any(isinstance(x, Far) for x in tree_leaves((args, kwargs)))
        reads = {aten._local_scalar_dense.default, aten.nonzero.default, aten.equal.default}
        copies = function is aten.copy_.default or (
            device != "None" and "_to_copy" in str(function)
        )
        waits = function in reads or (copies and not kwargs.get("non_blocking"))
        self.waits += is_far and waits
        if device == "meta":
            kwargs["device"] = torch.device("cpu")
        near, options = tree_map_only(Far, lambda far: far.near, (args, kwargs))
        found = function(*near, **options)
        if function._schema.is_mutable:
            return kwargs.get("out", args[0])
        return tree_map_only(torch.Tensor, Far, found) if is_far and device != "cpu" else found


def test_a_step_waits_for_the_device_once():
    shift, waits = Far(torch.zeros(1, 3, 2, 4)), []
    gradients = [Far((-1) ** (n == 3) * (picture(n, 2, 4).float() - n / 4)) for n in range(7)]
    with OtherDevice() as device:
        optimizer = LBFGS(shift.requires_grad_(), history=3, rate=1.0, first=0.1)
        for shift.grad in gradients:
            before = device.waits
            optimizer.step()
            waits.append(device.waits - before)
    assert waits == [0, 1, 1, 1, 1, 1, 1]
