"""What the doctor examines: FILE.py:NAME, its inputs, and one call of it."""

import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function

from styletransfer.errors import UserError
from styletransfer.lessons.graph import is_python_function, root, walk

SHAPE = re.compile(r"\d+(x\d+)*")


@dataclass(frozen=True)
class Subject:
    """A subject is something differentiable, with inputs in float64 to try it at."""

    name: str
    target: Any  #: a subclass of Function, a module, or a function
    function: Callable[..., Any]  #: what is called with all the inputs
    #: Leaves that require grad, and whatever else the target takes; then a module's parameters and
    #: buffers.
    inputs: tuple[Any, ...] = field(repr=False)
    given: int  #: how many inputs come before a module's own

    def call(self, *inputs: Any) -> Any:
        """Return the result; leaves are cloned first, since the target may change its inputs."""
        return self.function(*(x.clone() if requires_grad(x) else x for x in inputs))

    def differentiable(self, *inputs: Any) -> tuple[Tensor, ...]:
        """Return those tensors of the result that can be differentiated."""
        return differentiable_in(tensors_in(self.call(*inputs)))

    def functions(self) -> list[type[Function]]:
        """Return the target if it is a Function, else the Functions in the graph of its result."""
        if is_function(self.target):
            return [self.target]
        outputs = self.differentiable(*self.inputs)  # the nodes live as long as these
        nodes = walk(*map(root, outputs))
        found = [vars(type(node))["_forward_cls"] for node in nodes if is_python_function(node)]
        return list(dict.fromkeys(found))


def requires_grad(x: Any) -> bool:
    """Return whether x is a tensor that requires grad."""
    return isinstance(x, Tensor) and x.requires_grad


def differentiable_in(values: Iterable[Any]) -> tuple[Tensor, ...]:
    """Return the values that are tensors and require grad."""
    return tuple(x for x in values if requires_grad(x))


def is_function(target: Any) -> bool:
    """Return whether the target is a class of `torch.autograd.Function`."""
    return isinstance(target, type) and issubclass(target, Function)


def tensors_in(result: Any) -> list[Tensor]:
    """Return the tensors of a result: a tensor, or a tuple, list or dictionary of anything."""
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, tuple | list):
        return [x for each in result for x in tensors_in(each)]
    return [result] if isinstance(result, Tensor) else []


def subject(target: Any, inputs: Sequence[Any], name: str = "") -> Subject:
    """Return the subject of a target and its inputs (UserError: none of them is differentiable).

    Floating point tensors become leaves in float64. If none requires grad, all of them will.
    """
    every = not any(map(requires_grad, inputs))
    leaves = tuple(_leaf(x, every) if isinstance(x, Tensor) else x for x in inputs)
    name = name or getattr(target, "__name__", type(target).__name__)
    called, given = target.apply if is_function(target) else target, len(leaves)
    if isinstance(target, nn.Module):
        called, own = _as_function(target.double(), given)
        leaves += own
    found = Subject(name, target, called, leaves, given)
    if not any(map(requires_grad, found.inputs)):
        raise UserError(f"{name}: no input can be differentiated; give a floating point tensor")
    return found


def _as_function(module: nn.Module, given: int) -> tuple[Callable[..., Any], tuple[Tensor, ...]]:
    """Return a function of a module's inputs and of its parameters and buffers, and these."""
    own = dict(module.named_parameters()) | dict(module.named_buffers())

    def call(*inputs: Any) -> Any:
        named = dict(zip(own, inputs[given:], strict=True))
        return torch.func.functional_call(module, named, inputs[:given])

    return call, tuple(own.values())


def _leaf(x: Tensor, every: bool) -> Tensor:
    """Return a leaf in float64 with the values of x; x itself if it is no floating point tensor."""
    if not x.is_floating_point():
        return x
    return x.detach().double().clone().requires_grad_(every or x.requires_grad)


def load(target: str, inputs: Sequence[str]) -> Subject:
    """Return the subject FILE.py:NAME (UserError: there is none, or it cannot be called).

    `inputs`: shapes such as "4x3", which become seeded normal values, or the name of a function in
    the file, which returns the inputs as a tuple. The file's code is run.
    """
    path, _, name = target.rpartition(":")
    if not path or not Path(path).is_file():
        raise UserError(f"target={target}: give FILE.py:NAME of a file that is there")
    spec = importlib.util.spec_from_file_location("styletransfer_target", path)
    if spec is None or spec.loader is None:
        raise UserError(f"target={target}: {path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and torch.compile look for it there
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UserError(
            f"target={target}: {path} fails: {type(error).__name__}: {error}"
        ) from error
    found = _named(module, name, path)
    if inspect.isclass(found) and issubclass(found, nn.Module):
        found = _made(found, f"target={target}")
    return subject(found, _inputs(module, inputs, path), name)


def _named(module: Any, name: str, path: str) -> Any:
    """Return what a name means in a module (UserError: nothing, or nothing that is callable)."""
    found = getattr(module, name, None)
    if not callable(found):
        raise UserError(f"{path} has no Function, module or function {name!r}")
    return found


def _inputs(module: Any, words: Sequence[str], path: str) -> list[Any]:
    """Return the inputs that the words name."""
    generator = torch.Generator().manual_seed(0)
    found: list[Any] = []
    for word in words:
        if SHAPE.fullmatch(word):
            shape = [int(side) for side in word.split("x")]
            found.append(torch.randn(shape, generator=generator, dtype=torch.float64))
        else:
            made = _made(_named(module, word, path), f"inputs={word}")
            found += made if isinstance(made, tuple | list) else [made]
    return found


def _made(make: Callable[[], Any], what: str) -> Any:
    """Return what a call without arguments makes (UserError: it fails)."""
    try:
        return make()
    except Exception as error:
        words = f"{type(error).__name__}: {error}"
        raise UserError(f"{what} cannot be called without arguments: {words}") from error
