"""What every probe of the doctor works on: a subject, its gradient, and what was seen of it."""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from styletransfer.lessons.doctor.subject import (
    Subject,
    differentiable_in,
    is_function,
    requires_grad,
    subject,
    tensors_in,
)
from styletransfer.lessons.doctor.watch import backward_name, watched

# Step of the difference quotients in float64; the rounding error is about 1e-10 times the total.
STEP = 1e-6


@dataclass(frozen=True)
class Verdict:
    """A verdict is what a probe says."""

    word: str = "ok"  #: "ok"; "note": good to know; "FAULT": to be changed
    text: str = ""  #: what was found
    change: str = ""  #: what to change, and where


class Study:
    """A study is a subject with its gradient at its inputs.

    Attributes:
        subject: what is examined.
        functions: the Functions that its backward pass runs.
        gradients: of the method `total`, one for each input that requires grad; None if unused.
        seen: the recorded calls of the Functions, while `gradients` were computed.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject, self.functions = subject, subject.functions()
        with watched(self.functions) as self.seen:
            self.gradients = self.gradients_of(*subject.inputs)

    @cached_property
    def leaves(self) -> tuple[Tensor, ...]:
        """The inputs that require grad."""
        return differentiable_in(self.subject.inputs)

    @cached_property
    def is_random(self) -> bool:
        """Whether forward gives another result when it is called again."""
        results = (self.subject.differentiable(*self.subject.inputs) for _ in range(2))
        return any(
            one.shape != other.shape or not torch.allclose(one, other, rtol=1e-9, equal_nan=True)
            for one, other in zip(*results, strict=True)
        )

    def total(self, *inputs: Any) -> Tensor:
        """Return a sum of all outputs, with weights that differ from number to number."""
        outputs = tensors_in(self.subject.call(*inputs))
        return _weighted_sum(x for x in outputs if x.is_floating_point())

    def with_leaves(self, *leaves: Tensor) -> list[Any]:
        """Return the inputs with other tensors in the place of the leaves."""
        others = iter(leaves)
        return [next(others) if requires_grad(x) else x for x in self.subject.inputs]

    def total_at(self, *leaves: Tensor) -> Tensor:
        """Return `total` with other tensors in the place of the leaves."""
        return self.total(*self.with_leaves(*leaves))

    @cached_property
    def slopes(self) -> list[Tensor]:
        """The gradient of `total` for each of `leaves`, by difference quotients of forward alone.

        An output that has no derivative, since forward says so, is left out.
        """
        return [
            leaf.new_tensor([self._slope(leaf, i) for i in range(leaf.numel())]).view_as(leaf)
            for leaf in self.leaves
        ]

    def _slope(self, leaf: Tensor, index: int) -> float:
        """Return the derivative of `total` with respect to one number of a leaf."""

        def at(step: float) -> float:
            moved = leaf.detach().flatten().clone()
            moved[index] += step
            made = moved.view(leaf.shape).requires_grad_()
            inputs = self.with_leaves(*(made if x is leaf else x for x in self.leaves))
            return _weighted_sum(self.subject.differentiable(*inputs)).item()

        return (at(STEP) - at(-STEP)) / (2 * STEP)

    def gradients_of(self, *inputs: Any) -> list[Tensor | None]:
        """Return the gradient of `total` with respect to each input that requires grad."""
        total = self.total(*inputs)
        return list(torch.autograd.grad(total, differentiable_in(inputs), allow_unused=True))

    def with_inputs(self, change: Callable[[Tensor], Tensor], own: bool = True) -> tuple[Any, ...]:
        """Return the inputs, each floating point tensor as `change` makes it, and leaves anew.

        If not `own`, a module's parameters and buffers stay as they are.
        """
        end = len(self.subject.inputs) if own else self.subject.given
        return tuple(
            change(x.detach()).requires_grad_(x.requires_grad)
            if isinstance(x, Tensor) and x.is_floating_point() and number < end
            else x
            for number, x in enumerate(self.subject.inputs)
        )

    @cached_property
    def parts(self) -> "list[Study]":
        """One study for each call of a Function inside a module or a plain function.

        Each study holds the inputs that this call received. A Function itself has no parts.
        """
        calls = [] if is_function(self.subject.target) else self.seen
        return [Study(subject(seen.function, seen.inputs)) for seen in calls if seen.called]

    def place(self, method: str = "backward") -> str:
        """Return where a fault is: "relu.py:14, ReLU.backward"; or "in NAME" of no Function."""
        of = self.subject.target
        if not is_function(of):
            return f"in {self.subject.name}"
        name = backward_name(of) if method == "backward" else method
        try:
            code = inspect.unwrap(getattr(of, name))
            file, line = inspect.getsourcefile(code), inspect.getsourcelines(code)[1]
            return f"{Path(str(file)).name}:{line}, {of.__name__}.{name}"
        except (OSError, TypeError):
            return f"{of.__name__}.{name}"


def weights_like(x: Tensor) -> Tensor:
    """Return weights in the shape of x, which rise from 0.5 to 1.5 from element to element."""
    return torch.linspace(0.5, 1.5, x.numel()).to(x).view(x.shape)


def _weighted_sum(outputs: Iterable[Tensor]) -> Tensor:
    total = torch.zeros((), dtype=torch.float64)
    for output in outputs:
        total = total + (output * weights_like(output)).sum()
    return total


def same(one: Any, other: Any, tolerance: float = 1e-6) -> bool:
    """Return whether two lists of gradients are alike; None is like zeros."""
    return all(
        torch.allclose(_number(a, b), _number(b, a), rtol=tolerance, atol=tolerance)
        for a, b in zip(one, other, strict=True)
    )


def _number(x: Tensor | None, other: Tensor | None) -> Tensor:
    if x is None:
        return torch.zeros(()) if other is None else torch.zeros_like(other).double()
    return x.detach().double()
