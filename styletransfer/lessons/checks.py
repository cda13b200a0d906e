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
        return " ".join([*(str(tuple(x.shape)) for x in self.inputs), self.note]).rstrip()


@dataclass(frozen=True)
class Verdict:
    """What `check` found: deviations of the first and second derivatives, and what is wrong.

    Deviations are relative to the Jacobian's largest entry; `complaint` is "" if all is right.
    """

    first: float
    second: float
    complaint: str


def check(case: Case) -> Verdict:
    """Check first and second derivatives of one case; never raises for a wrong one."""
    generator = torch.Generator().manual_seed(1)
    # One fixed direction per differentiable output, for the second derivative.
    directions = [
        torch.randn(x.shape, generator=generator, dtype=x.dtype).to(x.device).requires_grad_()
        for x in _differentiable(case.function(*case.inputs))
    ]

    def gradient(*arguments: Tensor) -> tuple[Tensor, ...]:
        """(inputs, directions) -> gradients, whose Jacobian is the second derivative."""
        inputs, along = arguments[: len(case.inputs)], arguments[len(case.inputs) :]
        leaves = [x for x in inputs if x.requires_grad]
        outputs = _differentiable(case.function(*inputs))
        return torch.autograd.grad(
            outputs, leaves, along, create_graph=True, materialize_grads=True
        )

    first = relative_deviation(*jacobians(case.function, case.inputs))
    second = relative_deviation(*jacobians(gradient, (*case.inputs, *directions)))
    # A deviation that is NaN is not small, so it fails too.
    small = first <= TOLERANCE and second <= TOLERANCE
    complaint = "" if small else f"deviation above {TOLERANCE:g}"
    try:
        gradcheck(case.function, case.inputs, eps=STEP, check_batched_grad=True)
        gradgradcheck(case.function, case.inputs, directions, eps=STEP, check_batched_grad=True)
    except RuntimeError as error:
        complaint = str(error).strip().splitlines()[0]
    return Verdict(first, second, complaint)


def check_in_float32(case: Case) -> tuple[bool, float, float]:
    """Repeat the first-order check in float32, which fails though the backward is right.

    Returns:
        Whether torch's gradcheck passes; how far the backward is from the difference quotient, and
        from float64's backward.
    """
    inputs = tuple(x.detach().float().requires_grad_(x.requires_grad) for x in case.inputs)
    analytic, numerical = jacobians(case.function, inputs)
    exact, _ = jacobians(case.function, case.inputs)
    with warnings.catch_warnings():
        # gradcheck warns that the check will likely fail; showing that is the purpose.
        warnings.filterwarnings("ignore", message=".*not a double precision floating point")
        passed = gradcheck(case.function, inputs, eps=STEP, raise_exception=False)
    off_quotient = relative_deviation(analytic, numerical)
    return passed, off_quotient, relative_deviation(analytic.double(), exact)


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
    leaves = [x for x in inputs if x.requires_grad]
    output = _flat(function(*inputs))
    gradients = (
        torch.autograd.grad(value, leaves, retain_graph=True, materialize_grads=True)
        for value in output
    )
    rows = [torch.cat([part.reshape(-1) for part in parts]) for parts in gradients]

    def at(leaf: Tensor, element: int, distance: float) -> Tensor:
        """The flat output after one element of one input has moved."""
        offset = torch.zeros(leaf.numel(), dtype=leaf.dtype, device=leaf.device)
        offset[element] = distance
        moved = (leaf.detach() + offset.view(leaf.shape)).requires_grad_()
        return _flat(function(*(moved if x is leaf else x for x in inputs))).detach()

    columns = [
        (at(leaf, element, step) - at(leaf, element, -step)) / (2 * step)
        for leaf in leaves
        for element in range(leaf.numel())
    ]
    if not rows or not columns:
        empty = output.new_zeros(len(rows), len(columns))
        return empty, empty
    return torch.stack(rows), torch.stack(columns, dim=1)


def _differentiable(output: Any) -> list[Tensor]:
    """The outputs that carry a gradient: indices and the like are left out."""
    outputs = output if isinstance(output, tuple) else (output,)
    return [x for x in outputs if x.requires_grad]


def _flat(output: Any) -> Tensor:
    return torch.cat([x.reshape(-1) for x in _differentiable(output)])
