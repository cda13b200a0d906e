"""The two example Functions, and the checker, which fails a wrong backward and no right one."""

import pytest
import torch
from comparing import (
    LAYOUTS,
    assert_same,
    case_of,
    check_bad_input,
    check_torch_func,
    images,
    leaf,
    written_functions,
)
from torch import nn

from styletransfer.lessons.checks import cases, check
from styletransfer.lessons.functions import linear, relu

pytestmark = pytest.mark.usefixtures("seeded")


def test_every_function_passes():
    checked = set()
    for case in cases():
        assert (case.name, case.shapes, check(case)) == (case.name, case.shapes, "")
        result = case.function(*case.inputs)
        last = [x for x in (result if isinstance(result, tuple) else (result,)) if x.requires_grad]
        checked.add(last[-1].grad_fn.name().removesuffix("Backward"))
    # FedTap adds a gradient on the way back that by design is no slope of its forward.
    assert {"ReLUFunction", "MomentsTap"} < {*written_functions()} - {"FedTap"} <= checked


@pytest.mark.parametrize(
    "slope",
    [
        lambda grad, x: grad * x,
        lambda grad, x: grad * 2 * x * (1 + 1e-5),  # gradcheck's own tolerance is 1e-3
        lambda grad, x: 2 * x,  # without the chain rule
        lambda grad, x: grad * float("nan"),
        lambda grad, x: grad * 2 * (x + (x.detach() - x)),  # wrong second derivatives
        lambda grad, x: grad * 2 * (x + 1e-5 * (x.detach() - x)),
    ],
)
def test_a_wrong_backward_is_caught(slope):
    assert "mismatch" in check(case_of(slope))


def test_relu_equals_torchs_in_every_layout(device):
    for layout in LAYOUTS:
        x = images(layout, 2, 3, 4, 5, device=device)
        assert_same(relu(x), torch.relu(x), [x])
        assert relu(x).stride() == torch.relu(x).stride()


def test_relu_at_zero_nan_and_infinite_gradient_as_torch():
    x = torch.tensor([0.0, -0.0, float("nan"), -1.0, 2.0], requires_grad=True)
    direction = torch.tensor([1.0, 1.0, 1.0, float("inf"), float("inf")])
    (ours,) = torch.autograd.grad(relu(x), x, direction)
    (theirs,) = torch.autograd.grad(torch.relu(x), x, direction)
    assert ours.tolist() == theirs.tolist() == [0, 0, 1, 0, float("inf")]


def test_linear_takes_every_shape_that_torchs_does(device):
    for shape in [(3,), (4, 3), (2, 4, 3), (0, 3), (2, 0, 3)]:
        x, weight, bias = (leaf(*size, device=device) for size in (shape, (2, 3), (2,)))
        for leaves in ([x, weight], [x, weight, bias]):
            assert_same(linear(*leaves), nn.functional.linear(*leaves), leaves)


def test_linear_computes_and_saves_only_what_is_due():
    for due in ((True, False, False), (False, True, False), (False, False, True)):
        tensors = [leaf(4, 3), leaf(2, 3), leaf(2)]
        for tensor, needed in zip(tensors, due, strict=True):
            tensor.requires_grad_(needed)
        output = linear(*tensors)
        saved_x, saved_weight = output.grad_fn.saved_tensors
        assert (saved_x is not None, saved_weight is not None) == (due[1], due[0])
        output.sum().backward()
        assert [tensor.grad is not None for tensor in tensors] == list(due)


def test_torch_func_transforms():
    weight = torch.linspace(-1, 1, 6, dtype=torch.float64).view(2, 3)
    check_torch_func(relu, torch.relu, (4, 3))
    check_torch_func(lambda x: linear(x, weight), lambda x: x @ weight.T, (4, 3))


def test_bad_input_names_both_sides():
    x, weight = torch.zeros(2, 2), torch.zeros(2, 2)
    for bad in (
        (relu, (torch.ones(2, dtype=torch.int64),), TypeError, ["int64", "x.float()"]),
        (linear, (x, weight.int()), TypeError, ["weight", "int32"]),
        (linear, (x, weight.double()), TypeError, ["float32", "float64"]),
        (linear, (x, weight.to("meta")), ValueError, ["cpu", "meta"]),
        (linear, (torch.zeros(4, 3), torch.zeros(3, 4)), ValueError, ["(4, 3)", "(3, 4)"]),
        (linear, (torch.zeros(3), torch.zeros(3)), ValueError, ["(outputs, inputs)"]),
        (linear, (x, weight, torch.zeros(3)), ValueError, ["(2, 2)", "(2,)", "(3,)"]),
        (linear, (x, weight, x[0].half()), TypeError, ["float32", "bias", "float16"]),
    ):
        check_bad_input(*bad)
