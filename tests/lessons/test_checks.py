"""The checker passes every Function, and fails what is wrong."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

from styletransfer import functions, lessons
from styletransfer.lessons.cases import cases
from styletransfer.lessons.checks import (
    TOLERANCE,
    Case,
    check,
    check_in_float32,
    jacobians,
    relative_deviation,
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
        (x,) = ctx.saved_tensors
        return grad_output * x


class SlightlyWrong(Square):
    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x * (1 + 1e-5)


class ForgottenChainRule(Square):
    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 2 * x


class WrongSecondDerivative(Square):
    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x.detach()


def case_of(function: type[Function]) -> Case:
    x = torch.tensor([0.5, -1.5, 2.0], dtype=torch.float64, requires_grad=True)
    return Case(function.__name__, function.apply, (x,))


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.name} {case.shapes}")
def test_every_function_passes(case: Case) -> None:
    outcome = check(case)
    assert outcome.complaint == ""
    assert max(outcome.first, outcome.second) <= TOLERANCE


def test_every_exported_function_has_cases() -> None:
    exported = {
        name
        for room in (functions, lessons)
        for name in room.__all__
        if isinstance(getattr(room, name), type) and issubclass(getattr(room, name), Function)
    }
    checked = set()
    for case in cases():
        result = case.function(*case.inputs)
        last = [x for x in (result if isinstance(result, tuple) else (result,)) if x.requires_grad]
        checked.add(last[-1].grad_fn.name().removesuffix("Backward"))
    assert exported
    assert exported <= checked


@pytest.mark.parametrize("wrong", [WrongFactor, SlightlyWrong, ForgottenChainRule])
def test_a_wrong_backward_is_caught(wrong: type[Function]) -> None:
    outcome = check(case_of(wrong))
    assert not outcome.passed
    assert outcome.complaint


def test_the_deviation_is_the_measured_one() -> None:
    assert check(case_of(WrongFactor)).first == pytest.approx(0.5)
    assert check(case_of(SlightlyWrong)).first == pytest.approx(1e-5, rel=1e-3)
    assert check(case_of(Square)).first < 1e-8


def test_a_wrong_second_derivative_is_caught() -> None:
    outcome = check(case_of(WrongSecondDerivative))
    assert outcome.first < 1e-8
    assert outcome.second > 0.1
    assert not outcome.passed


def test_jacobians_of_a_known_map() -> None:
    matrix = torch.arange(6, dtype=torch.float64).view(2, 3)
    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    analytic, numerical = jacobians(lambda x: matrix @ x, (x,))
    torch.testing.assert_close(analytic, matrix)
    torch.testing.assert_close(numerical, matrix, rtol=1e-8, atol=1e-8)


def test_relative_deviation() -> None:
    assert relative_deviation(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0])) == 0.5
    assert relative_deviation(torch.tensor([0.5]), torch.tensor([0.0])) == 0.5
    assert relative_deviation(torch.empty(0), torch.empty(0)) == 0


def test_not_a_number_fails() -> None:
    class NotANumber(Square):
        @staticmethod
        def backward(ctx: Any, grad_output: Tensor) -> Tensor:
            return grad_output * float("nan")

    assert not check(case_of(NotANumber)).passed


@pytest.mark.parametrize(
    "case", [case_of(Square), cases()[3], cases()[-2]], ids=lambda case: case.name
)
def test_float32_fails_though_its_backward_is_right(case: Case) -> None:
    outcome = check_in_float32(case)
    assert not outcome.gradcheck_passed
    assert outcome.quotient_deviation > 1e-3
    assert outcome.backward_deviation < 1e-6
