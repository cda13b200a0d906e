"""Records the calls of Functions: what forward saves, and what backward gets and returns."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from torch import Tensor
from torch.autograd import Function


def tensors_in(result: Any) -> list[Tensor]:
    """Return the tensors in a result, including those nested in tuples, lists and dictionaries."""
    if isinstance(result, tuple | list | dict):
        values = result.values() if isinstance(result, dict) else result
        return [x for each in values for x in tensors_in(each)]
    return [result] if isinstance(result, Tensor) else []


def is_among(x: Tensor, others: Iterable[Tensor]) -> bool:
    """Return whether x is the same object as one of `others`."""
    return any(x is other for other in others)


def is_function(target: Any) -> bool:
    """Return whether the target is a subclass of `torch.autograd.Function`."""
    return isinstance(target, type) and issubclass(target, Function)


@dataclass
class Seen:
    """A Seen is the record of one call of a Function, from forward to backward."""

    function: type[Function]
    inputs: tuple[Any, ...]
    result: Any
    changed: list[int]  #: indices of inputs that are changed in place and not marked
    attributes: list[tuple[str, Tensor]]  #: names and tensors of attributes set on `ctx`
    own: list[Tensor]  #: tensors kept for backward that are neither inputs nor outputs
    called: int = 0  #: how often backward ran
    grads: tuple[Any, ...] = ()  #: what the first backward returned
    spoiled: bool = False  #: whether backward changed a grad_output in place


def method_of(function: type[Function], role: str) -> str:
    """Return the name of the method with a role: "backward" differentiates, "context" fills ctx."""
    if role == "context":
        return "forward" if function.setup_context is Function.setup_context else "setup_context"
    return "vjp" if role == "backward" and function.backward is Function.backward else role


def _states(values: Sequence[Any]) -> list[Any]:
    """Return version and values of each tensor; a change of `x.data` keeps the version."""
    return [
        (x._version, x.detach().to_dense().nan_to_num().tolist()) if isinstance(x, Tensor) else None
        for x in values
    ]


@contextmanager
def _patched(
    functions: Sequence[type[Function]], make: Callable[[type[Function]], dict[str, Any]]
) -> Iterator[None]:
    """Replace methods of each Function by those that `make` returns, in the `with` block."""
    with ExitStack() as stack:
        for function in functions:
            methods: Any = {name: staticmethod(each) for name, each in make(function).items()}
            stack.enter_context(patch.multiple(function, **methods))
        yield


@contextmanager
def watched(functions: Sequence[type[Function]]) -> Iterator[list[Seen]]:
    """Yield a list to which each call of a Function in the `with` block adds a `Seen`."""
    calls: list[Seen] = []
    with _patched(functions, lambda function: _watching(function, calls)):
        yield calls


def _watching(function: type[Function], calls: list[Seen]) -> dict[str, Callable[..., Any]]:
    """Return the methods of a Function, wrapped so that they record what they do."""
    forward, setup = function.forward, function.setup_context
    backward = getattr(function, name := method_of(function, "backward"))
    is_apart = method_of(function, "context") == "setup_context"
    before: list[Any] = []

    def watched_forward(*args: Any) -> Any:
        inputs = args if is_apart else args[1:]
        before[:] = _states(inputs)
        result = forward(*args)
        if not is_apart:
            watched_setup(args[0], inputs, result)
        return result

    def watched_setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        if is_apart:
            setup(ctx, inputs, output)
        marked = tensors_in(ctx.dirty_tensors or ())
        pairs = enumerate(zip(before, _states(inputs), strict=True))
        changed = [i for i, (old, new) in pairs if old != new and not is_among(inputs[i], marked)]
        attributes = [(name, x) for name, value in vars(ctx).items() for x in tensors_in(value)]
        kept, known = tensors_in([ctx.to_save or (), attributes]), tensors_in([inputs, output])
        own = [x for x in kept if not is_among(x, known)]
        calls.append(Seen(function, inputs, output, changed, attributes, own))
        ctx._doctor = len(calls) - 1

    def watched_backward(ctx: Any, *grads: Any) -> Any:
        seen, before = calls[ctx._doctor], _states(grads)
        result = backward(ctx, *grads)
        seen.called += 1
        seen.spoiled |= before != _states(grads)
        seen.grads = seen.grads or (result if isinstance(result, tuple) else (result,))
        return result

    methods = {"forward": watched_forward, name: watched_backward}
    return methods | ({"setup_context": watched_setup} if is_apart else {})


def scaled(functions: Sequence[type[Function]]) -> AbstractContextManager[None]:
    """Multiply the result of each backward by 1.5, to tell it from autograd's own derivative."""

    def wrong(function: type[Function]) -> dict[str, Any]:
        backward = getattr(function, name := method_of(function, "backward"))

        def method(ctx: Any, *grads: Any) -> Any:
            found = backward(ctx, *grads)
            found = found if isinstance(found, tuple) else (found,)
            return tuple(None if each is None else 1.5 * each for each in found)

        return {name: method}

    return _patched(functions, wrong)
