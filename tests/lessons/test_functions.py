"""The didactic Functions against the built-in operation that each stands for."""

from collections.abc import Callable

import pytest
import torch
from comparing import LAYOUTS, Bad, assert_same, check_bad_input, check_torch_func, images, leaf
from torch import nn

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

pytestmark = pytest.mark.usefixtures("seeded")


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
    results = [relu(x), scale(x, x), linear(x, x[0, 0]), *global_max_pool(x)]
    assert not any(result.requires_grad for result in results)


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
    assert torch.equal(layer(x), linear(x, layer.weight, layer.bias))
    assert unbiased.bias is None
    assert torch.equal(unbiased(x), linear(x, unbiased.weight))
    assert torch.equal(scaled(x), x)
    assert repr(scaled) == "Scale(3, 1)"
    assert all(
        torch.equal(*pair) for pair in zip(GlobalMaxPool()(x), global_max_pool(x), strict=True)
    )


WEIGHT = torch.linspace(-1, 1, 6, dtype=torch.float64).view(2, 3)
FUNCTIONS = {
    "relu": (relu, torch.relu, (4, 3)),
    "scale": (lambda x: scale(x, WEIGHT[0]), lambda x: x * WEIGHT[0], (4, 3)),
    "linear": (lambda x: linear(x, WEIGHT), lambda x: x @ WEIGHT.T, (4, 3)),
    "pool": (lambda x: global_max_pool(x)[0], lambda x: x.flatten(2).amax(2), (2, 3, 2, 2)),
}


@pytest.mark.parametrize(("ours", "theirs", "shape"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_torch_func_transforms(ours: Callable, theirs: Callable, shape: tuple[int, ...]) -> None:
    check_torch_func(ours, theirs, shape)


F = torch.zeros(1, 3, 2, 2)
BAD: list[Bad] = [
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
    (Linear, (0, 3), ValueError, ["(0, 3)"]),
]


@pytest.mark.parametrize(("function", "arguments", "error", "words"), BAD)
def test_bad_input_names_both_sides(
    function: Callable, arguments: tuple, error: type[Exception], words: list[str]
) -> None:
    check_bad_input(function, arguments, error, words)
