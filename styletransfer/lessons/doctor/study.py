"""What every probe of the doctor works on: something differentiable, called and watched."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function

from styletransfer.errors import UserError
from styletransfer.lessons.doctor.watch import (
    Seen,
    backward_name,
    context_name,
    tensors_in,
    watched,
)
from styletransfer.lessons.graph import is_python_function, root, walk

# Step of the difference quotients in float64; the rounding error is about 1e-10 times the total.
STEP = 1e-6
# Returns a tensor with the values of its argument; its layout in memory (strides) may differ.
Layout = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Verdict:
    """A verdict is what a probe says."""

    word: str = "ok"  #: "ok"; "note": good to know; "FAULT": to be changed
    text: str = ""  #: what was found
    change: str = ""  #: what to change
    method: str = "backward"  #: where; "context" is the method that fills `ctx`
    is_last: bool = False  #: whether other probes cannot tell anything


note, fault = partial(Verdict, "note"), partial(Verdict, "FAULT")


def is_function(target: Any) -> bool:
    """Return whether the target is a class of `torch.autograd.Function`."""
    return isinstance(target, type) and issubclass(target, Function)


def requires_grad(x: Any) -> bool:
    """Return whether x is a tensor that requires grad."""
    return isinstance(x, Tensor) and x.requires_grad


def differentiable_in(values: Iterable[Any]) -> tuple[Tensor, ...]:
    """Return the values that are tensors and require grad."""
    return tuple(x for x in values if requires_grad(x))


class Study:
    """A study is a Function, a module or a function, and its gradient at inputs in float64.

    Floating point inputs become leaves. If none requires grad, all of them will. (UserError: none
    is differentiable.)

    Attributes:
        inputs: the leaves, and whatever else the target takes; then a module's parameters and
            buffers.
        given: how many inputs come before a module's own.
        leaves, due: the inputs that require grad, and their numbers.
        directions: in which the leaves are moved to measure a derivative.
    """

    def __init__(self, target: Any, inputs: Sequence[Any], name: str = "") -> None:
        every = not any(map(requires_grad, inputs))
        self.target = target
        self.name = name or getattr(target, "__name__", type(target).__name__)
        self.inputs, self.given = tuple(_leaf(x, every) for x in inputs), len(inputs)
        self._own: dict[str, Tensor] = {}
        if isinstance(target, nn.Module):
            target.double()
            self._own = dict(target.named_parameters()) | dict(target.named_buffers())
            self.inputs += tuple(self._own.values())
        self.leaves = differentiable_in(self.inputs)
        self.directions = tuple(map(weights_like, self.leaves))
        self.due = [index for index, x in enumerate(self.inputs) if requires_grad(x)]
        if not self.leaves:
            raise UserError(
                f"{self.name}: no input can be differentiated; give a floating point tensor"
            )

    def call(self, *inputs: Any, layout: Layout = torch.clone) -> Any:
        """Return the result for copies of the leaves, since the target may change its inputs."""
        given = tuple(layout(x) if requires_grad(x) else x for x in inputs[: self.given])
        if self._own:
            own = {name: x.clone() for name, x in zip(self._own, inputs[self.given :], strict=True)}
            return torch.func.functional_call(self.target, own, given)
        return (self.target.apply if is_function(self.target) else self.target)(*given)

    def differentiable(self, *inputs: Any, layout: Layout = torch.clone) -> tuple[Tensor, ...]:
        """Return those tensors of the result that can be differentiated."""
        return differentiable_in(tensors_in(self.call(*inputs, layout=layout)))

    @cached_property
    def functions(self) -> list[type[Function]]:
        """The target if it is a Function, else the Functions in the graph of its result."""
        if is_function(self.target):
            return [self.target]
        outputs = self.differentiable(*self.inputs)  # the nodes live as long as these
        nodes = walk(*map(root, outputs))
        found = [vars(type(node))["_forward_cls"] for node in nodes if is_python_function(node)]
        return list(dict.fromkeys(found))

    @cached_property
    def gradients(self) -> list[Tensor | None]:
        """The gradients of the method `total`, one for each of `leaves`; None if unused."""
        return self.gradients_of(*self.inputs)

    @cached_property
    def seen(self) -> list[Seen]:
        """The recorded calls of the Functions, in one backward pass from `total`."""
        with watched(self.functions) as seen:
            self.gradients_of(*self.inputs)
        return seen

    @cached_property
    def is_random(self) -> bool:
        """Whether forward gives another result when it is called again."""
        results = (self.differentiable(*self.inputs) for _ in range(2))
        return any(
            one.shape != other.shape or not torch.allclose(one, other, rtol=1e-9, equal_nan=True)
            for one, other in zip(*results, strict=True)
        )

    def total(self, *inputs: Any) -> Tensor:
        """Return a sum of all outputs, with weights that differ from number to number."""
        return _weighted_sum(tensors_in(self.call(*inputs)))

    def with_leaves(self, *leaves: Tensor) -> list[Any]:
        """Return the inputs with other tensors in the place of the leaves."""
        others = iter(leaves)
        return [next(others) if requires_grad(x) else x for x in self.inputs]

    def total_at(self, *leaves: Tensor) -> Tensor:
        """Return `total` with other tensors in the place of the leaves."""
        return self.total(*self.with_leaves(*leaves))

    def slope(self, *directions: Tensor) -> float:
        """Return the derivative of `total` along directions, by a difference quotient of forward.

        There is a direction for each of `leaves`. An output that has no derivative, since forward
        says so, is left out.
        """

        def at(step: float) -> float:
            pairs = zip(self.leaves, directions, strict=True)
            moved = ((x.detach() + step * way).requires_grad_() for x, way in pairs)
            return _weighted_sum(self.differentiable(*self.with_leaves(*moved))).item()

        return (at(STEP) - at(-STEP)) / (2 * STEP)

    def gradients_of(self, *inputs: Any) -> list[Tensor | None]:
        """Return the gradient of `total` with respect to each input that requires grad."""
        total = self.total(*inputs)
        return list(torch.autograd.grad(total, differentiable_in(inputs), allow_unused=True))

    def with_inputs(self, change: Callable[[Tensor], Tensor]) -> tuple[Any, ...]:
        """Return the inputs, each floating point tensor as `change` makes it, and leaves anew."""
        return tuple(
            change(x.detach()).requires_grad_(x.requires_grad)
            if isinstance(x, Tensor) and x.is_floating_point()
            else x
            for x in self.inputs
        )

    @cached_property
    def parts(self) -> "list[Study]":
        """One study for each call of a Function, with the inputs that it received.

        A Function has one part, itself.
        """
        if is_function(self.target):
            return [self]
        return [Study(seen.function, seen.inputs) for seen in self.seen if seen.called]

    def place(self, method: str) -> str:
        """Return where a fault is: "relu.py:14, ReLU.backward"; or "in NAME" of no Function."""
        of = self.target
        if not is_function(of):
            return f"in {self.name}"
        name = {"backward": backward_name(of), "context": context_name(of)}.get(method, method)
        try:
            code = inspect.unwrap(getattr(of, name))
            file, line = inspect.getsourcefile(code), inspect.getsourcelines(code)[1]
            return f"{Path(str(file)).name}:{line}, {of.__name__}.{name}"
        except (OSError, TypeError):
            return f"{of.__name__}.{name}"


def _leaf(x: Any, every: bool) -> Any:
    """Return a leaf in float64 with the values of x; x itself if it is no floating point tensor."""
    if not isinstance(x, Tensor) or not x.is_floating_point():
        return x
    return x.detach().double().clone().requires_grad_(every or x.requires_grad)


def weights_like(x: Tensor) -> Tensor:
    """Return weights in the shape of x, which rise from 0.5 to 1.5 from element to element."""
    return torch.linspace(0.5, 1.5, x.numel()).to(x).view(x.shape)


def _weighted_sum(outputs: Iterable[Tensor]) -> Tensor:
    """Return the sum of weighted numbers; whole numbers are left out, complex ones are pairs."""
    total = torch.zeros((), dtype=torch.float64)
    for output in outputs:
        numbers = torch.view_as_real(output) if output.is_complex() else output
        if numbers.is_floating_point():
            total = total + (numbers * weights_like(numbers)).sum()
    return total


def same(one: Any, other: Any) -> bool:
    """Return whether two lists of gradients are alike; None is like zeros."""
    return all(
        torch.allclose(_number(a), _number(b), rtol=1e-6, atol=1e-6)
        for a, b in zip(one, other, strict=True)
    )


def _number(x: Tensor | None) -> Tensor:
    return torch.zeros((), dtype=torch.float64) if x is None else x.detach().double()
