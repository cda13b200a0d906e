"""The checker passes every Function, and fails what is wrong."""

from typing import Any

import pytest
import torch
from comparing import written_functions
from torch import Tensor
from torch.autograd import Function

from styletransfer.lessons.checks import (
    TOLERANCE,
    Case,
    cases,
    check,
    check_in_float32,
    jacobians,
)


class Square(Function):
    """x^2 with a right first derivative; subclasses get something wrong."""

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x * x

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x


class WrongFactor(Square):
    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        return grad_output * ctx.saved_tensors[0]


class SlightlyWrong(Square):
    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        return grad_output * 2 * ctx.saved_tensors[0] * (1 + 1e-5)


class ForgottenChainRule(Square):
    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        return 2 * ctx.saved_tensors[0]


class WrongSecondDerivative(Square):
    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        return grad_output * 2 * ctx.saved_tensors[0].detach()


class NotANumber(Square):
    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        return grad_output * float("nan")


def case_of(function: type[Function]) -> Case:
    x = torch.tensor([0.5, -1.5, 2.0], dtype=torch.float64, requires_grad=True)
    return Case(function.__name__, function.apply, (x,))


def test_every_function_passes() -> None:
    checked = set()
    for case in cases():
        verdict = check(case)
        assert (case.name, case.shapes, verdict.complaint) == (case.name, case.shapes, "")
        assert max(verdict.first, verdict.second) <= TOLERANCE
        result = case.function(*case.inputs)
        last = [x for x in (result if isinstance(result, tuple) else (result,)) if x.requires_grad]
        checked.add(last[-1].grad_fn.name().removesuffix("Backward"))
    # What FedTap adds on the way back is by design no slope of its forward.
    assert {"ReLUFunction", "MomentsTap"} < {*written_functions()} - {"FedTap"} <= checked


def test_cases_vary_with_the_seed_and_stay_off_the_corners() -> None:
    relu = cases()[0].inputs[0]
    assert not torch.equal(relu, cases(seed=1)[0].inputs[0])
    assert torch.equal(relu, cases()[0].inputs[0])
    assert relu.abs().min() >= 0.1


def test_a_wrong_backward_is_caught() -> None:
    for wrong in (WrongFactor, SlightlyWrong, ForgottenChainRule, NotANumber):
        assert check(case_of(wrong)).complaint
    assert check(case_of(WrongFactor)).first == pytest.approx(0.5)
    # gradcheck's own tolerance is 1e-3 of a slope.
    assert check(case_of(SlightlyWrong)).complaint == "deviation above 1e-06"
    assert check(case_of(SlightlyWrong)).first == pytest.approx(1e-5, rel=1e-3)
    verdict = check(case_of(WrongSecondDerivative))
    assert verdict.first < 1e-8
    assert verdict.second > 0.1
    assert verdict.complaint


def test_jacobians_of_a_known_map() -> None:
    matrix, more = torch.arange(12, dtype=torch.float64).view(2, 2, 3)
    x, y = torch.ones(2, 3, dtype=torch.float64).unbind()
    both = x.clone().requires_grad_(), y.clone().requires_grad_()
    analytic, numerical = jacobians(lambda x, y: (matrix @ x, more @ y), both)
    expected = torch.block_diag(matrix, more)
    torch.testing.assert_close(analytic, expected, rtol=0, atol=0)
    torch.testing.assert_close(numerical, expected, rtol=1e-8, atol=1e-8)


def test_float32_fails_though_its_backward_is_right() -> None:
    for case in (case_of(Square), cases()[3], cases()[-2]):
        passed, off_quotient, off_float64 = check_in_float32(case)
        assert not passed
        assert off_quotient > 1e-3
        assert off_float64 < 1e-6
