"""Measures how far each Function's backward is from the slope of its forward.

Nothing is assumed: the analytic Jacobian is read from autograd row by row, the numerical one from
central differences, and torch's own gradcheck and gradgradcheck give their verdicts beside them.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

# gradcheck's own step. In float64 it leaves about 1e-10 of rounding in a difference quotient.
STEP = 1e-6
# Accepted deviation in float64, relative to the largest entry: far above rounding, and far below
# what a wrong term in a formula gives.
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Case:
    """A function at one point: the tensors in `inputs` that require grad are varied."""

    name: str
    function: Callable[..., Any]
    inputs: tuple[Tensor, ...]
    note: str = ""

    @property
    def shapes(self) -> str:
        """The inputs' shapes, such as "(4, 3) (2, 3)", with the note about them if any."""
        given = " ".join(str(tuple(x.shape)) for x in self.inputs)
        return f"{given} {self.note}".rstrip()


@dataclass(frozen=True)
class CheckResult:
    """What `check` found: deviations are relative to the Jacobian's largest entry."""

    case: Case
    first: float
    second: float
    complaint: str

    @property
    def passed(self) -> bool:
        """True if both derivatives are right."""
        return not self.complaint


@dataclass(frozen=True)
class Float32Outcome:
    """Why float32 fails: the difference quotient is far off, the backward itself is not."""

    case: Case
    quotient_deviation: float
    backward_deviation: float
    gradcheck_passed: bool


def check(case: Case) -> CheckResult:
    """Check first and second derivatives of one case; never raises for a wrong one."""
    directions = _directions(case)
    gradient = _gradient_of(case.function, len(case.inputs))
    first = relative_deviation(*jacobians(case.function, case.inputs))
    second = relative_deviation(*jacobians(gradient, (*case.inputs, *directions)))
    complaint = ""
    try:
        gradcheck(case.function, case.inputs, eps=STEP, check_batched_grad=True)
        gradgradcheck(case.function, case.inputs, directions, eps=STEP, check_batched_grad=True)
    except RuntimeError as error:
        complaint = str(error).strip().splitlines()[0]
    # A deviation that is NaN is not small, so it fails too.
    small = first <= TOLERANCE and second <= TOLERANCE
    if not complaint and not small:
        complaint = f"deviation above {TOLERANCE:g}"
    return CheckResult(case, first, second, complaint)


def check_in_float32(case: Case) -> Float32Outcome:
    """Repeat the first-order check in float32, and compare its backward with float64's."""
    inputs = tuple(_leaf(x, torch.float32) for x in case.inputs)
    analytic, numerical = jacobians(case.function, inputs)
    exact, _ = jacobians(case.function, case.inputs)
    with warnings.catch_warnings():
        # gradcheck warns that the check will likely fail; showing that is the purpose.
        warnings.filterwarnings("ignore", message=".*not a double precision floating point")
        passed = gradcheck(case.function, inputs, eps=STEP, raise_exception=False)
    return Float32Outcome(
        case,
        relative_deviation(analytic, numerical),
        relative_deviation(analytic.double(), exact),
        passed,
    )


def relative_deviation(one: Tensor, other: Tensor) -> float:
    """Return max |one - other| / max |other|; the numerator alone if other is 0, 0 if empty."""
    if one.numel() == 0:
        return 0.0
    largest = float(other.abs().max())
    return float((one - other).abs().max()) / (largest or 1.0)


def jacobians(
    function: Callable[..., Any], inputs: tuple[Tensor, ...], step: float = STEP
) -> tuple[Tensor, Tensor]:
    """Return the Jacobian of function at inputs twice, analytic and numerical.

    Both have shape (elements of all differentiable outputs, elements of all inputs that require
    grad) and the inputs' dtype. The numerical one is (f(x + h) - f(x - h)) / 2h.
    """
    varied = [index for index, x in enumerate(inputs) if x.requires_grad]
    leaves = [inputs[index] for index in varied]
    output = _flat_output(function, inputs)
    rows = [
        torch.autograd.grad(value, leaves, retain_graph=True, materialize_grads=True)
        for value in output
    ]
    columns = [
        (_moved(function, inputs, index, at, step) - _moved(function, inputs, index, at, -step))
        / (2 * step)
        for index in varied
        for at in range(inputs[index].numel())
    ]
    shape = (output.numel(), sum(leaf.numel() for leaf in leaves))
    if 0 in shape:
        return output.new_zeros(shape), output.new_zeros(shape)
    analytic = torch.stack([torch.cat([part.reshape(-1) for part in row]) for row in rows])
    return analytic, torch.stack(columns, dim=1)


def _moved(
    function: Callable[..., Any],
    inputs: tuple[Tensor, ...],
    index: int,
    at: int,
    distance: float,
) -> Tensor:
    """The flat output after moving one element of one input."""
    moved = [_leaf(x, x.dtype) for x in inputs]
    chosen = inputs[index]
    offset = torch.zeros(chosen.numel(), dtype=chosen.dtype, device=chosen.device)
    offset[at] = distance
    moved[index] = (chosen.detach() + offset.view(chosen.shape)).requires_grad_()
    return _flat_output(function, tuple(moved)).detach()


def _differentiable(output: Any) -> list[Tensor]:
    """The outputs that carry a gradient: indices and the like are left out."""
    outputs = output if isinstance(output, tuple) else (output,)
    return [x for x in outputs if x.requires_grad]


def _flat_output(function: Callable[..., Any], inputs: tuple[Tensor, ...]) -> Tensor:
    return torch.cat([x.reshape(-1) for x in _differentiable(function(*inputs))])


def _directions(case: Case) -> list[Tensor]:
    """One fixed direction per differentiable output, for the second derivative."""
    generator = torch.Generator().manual_seed(1)
    return [
        torch.randn(x.shape, generator=generator, dtype=x.dtype).to(x.device).requires_grad_()
        for x in _differentiable(case.function(*case.inputs))
    ]


def _gradient_of(function: Callable[..., Any], count: int) -> Callable[..., tuple[Tensor, ...]]:
    """The map (inputs, directions) -> gradients, whose Jacobian is the second derivative."""

    def gradient(*arguments: Tensor) -> tuple[Tensor, ...]:
        inputs, directions = arguments[:count], arguments[count:]
        leaves = [x for x in inputs if x.requires_grad]
        outputs = _differentiable(function(*inputs))
        return torch.autograd.grad(
            outputs, leaves, directions, create_graph=True, materialize_grads=True
        )

    return gradient


def _leaf(x: Tensor, dtype: torch.dtype) -> Tensor:
    return x.detach().to(dtype).requires_grad_(x.requires_grad)
