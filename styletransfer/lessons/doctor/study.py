"""A Study: what the doctor's probes examine, with its inputs, its outputs and its gradients."""

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import BackwardCFunction
from torch.nn.modules.module import register_module_forward_pre_hook

from styletransfer.errors import UserError
from styletransfer.lessons.doctor import quotients
from styletransfer.lessons.doctor.watch import Seen, is_among, is_function, tensors_in, watched
from styletransfer.lessons.graph import root, walk

# A function that returns its argument's values, perhaps in another layout in memory (strides).
Layout = Callable[[Tensor], Tensor]


def differentiable_in(values: Iterable[Any]) -> tuple[Tensor, ...]:
    """Return the values that are tensors and require grad."""
    return tuple(x for x in values if isinstance(x, Tensor) and x.requires_grad)


def changed(values: Iterable[Any], change: Layout) -> tuple[Any, ...]:
    """Return the values; each floating point tensor becomes a new leaf, changed by `change`."""
    return tuple(
        change(x.detach()).requires_grad_(x.requires_grad)
        if isinstance(x, Tensor) and x.is_floating_point()
        else x
        for x in values
    )


class Study:
    """A study is a Function, a module or a function, with inputs and the gradient at them.

    Floating point inputs become leaves. Complex inputs become real leaves (..., 2) of real and
    imaginary parts. If no given input requires grad, all of them will; UserError if none can.

    Attributes:
        surrogates: names of Functions whose backward is, on purpose, not forward's derivative.
        inputs, names: the given inputs, then a module's parameters and buffers; their names.
        leaves, due: the inputs that require grad; their indices in `inputs`.
    """

    def __init__(
        self,
        target: Any,
        given: Sequence[Any],
        name: str = "",
        surrogates: Collection[str] = (),
        kind: tuple[torch.dtype, str] = (torch.float64, "cpu"),
    ) -> None:
        self.target, self.given, self.surrogates, self.kind = target, given, surrogates, kind
        self.name = name or getattr(target, "__name__", type(target).__name__)
        self._called = target.apply if is_function(target) else target
        self.own: dict[str, Tensor] = {}
        if isinstance(target, nn.Module):
            self.own = dict(target.named_parameters()) | dict(target.named_buffers())
        every = not differentiable_in(given)
        sources = [*((x, every) for x in given), *((x, False) for x in self.own.values())]
        self.inputs = tuple(_leaf(x, is_due, *kind) for x, is_due in sources)
        self.names = [*(f"input {index}" for index in range(len(given))), *self.own]
        self.is_complex = [isinstance(x, Tensor) and x.is_complex() for x, _ in sources]
        self.leaves = differentiable_in(self.inputs)
        self.directions = tuple(map(quotients.weights_like, self.leaves))
        self.due = [index for index, x in enumerate(self.inputs) if is_among(x, self.leaves)]
        if not self.leaves:
            raise UserError(f"{self.name}: give a floating point tensor, to be differentiated")

    def anew(self, kind: tuple[torch.dtype, str], change: Layout = torch.clone) -> "Study":
        """Return this study with another dtype and device, and with changed inputs."""
        return Study(self.target, changed(self.given, change), self.name, self.surrogates, kind)

    def call(self, *inputs: Any, layout: Layout = torch.clone) -> Any:
        """Return the target's result for copies of inputs, because the target may change them.

        A forward that draws random numbers draws the same ones each time.
        """
        values = [
            torch.complex(x[..., 0], x[..., 1]) if is_complex else x
            for x, is_complex in zip(inputs or self.inputs, self.is_complex, strict=True)
        ]
        count = len(self.given)
        given = [layout(x) if isinstance(x, Tensor) else x for x in values[:count]]
        if self.is_random:
            torch.manual_seed(0)
        if not self.own:
            return self._called(*given)
        own = dict(zip(self.own, map(torch.clone, values[count:]), strict=True))
        result = torch.func.functional_call(self.target, own, tuple(given))
        with suppress(RuntimeError):  # under torch.func, data_ptr() raises RuntimeError
            if not torch.compiler.is_compiling() and all(x.data_ptr() for x in own.values()):
                self.hold(own.values())
        return result

    def hold(self, values: Iterable[Tensor]) -> None:
        """Set the module's own tensors to `values`: torch's checkpoint reads them in backward."""
        for x, value in zip(self.own.values(), values, strict=True):
            x.data = value.detach()
            x.requires_grad_(value.requires_grad)

    def outputs(self, *inputs: Any, layout: Layout = torch.clone) -> list[Tensor]:
        """Return the tensors of the result, and those that the call leaves in modules, as `.loss`.

        Of the latter, those with a graph are meant. A complex tensor becomes a real one, (..., 2).
        """
        places = [place for place, has_graph in self.left.items() if has_graph]
        old = tensors_in([getattr(*place) for place in places])
        found = tensors_in(self.call(*inputs, layout=layout))
        for x in tensors_in([getattr(*place) for place in places]):
            found += [] if is_among(x, [*found, *old]) else [x]
        return [torch.stack([x.real, x.imag], -1) if x.is_complex() else x for x in found]

    @cached_property
    def left(self) -> dict[tuple[nn.Module, str], bool]:
        """(Module, attribute) where a call leaves new tensors -> whether they have a graph."""
        called: list[nn.Module] = []
        with register_module_forward_pre_hook(lambda module, _: called.extend(module.modules())):
            self.call()
        before, found = _kept(called), {}
        self.call()
        for place, tensors in _kept(called).items():
            if not all(is_among(x, before.get(place, ())) for x in tensors):
                found[place] = any(x.grad_fn is not None for x in tensors)
        return found

    @cached_property
    def functions(self) -> list[type[Function]]:
        """The target if it is a Function, else the Functions in the graph of its result."""
        if is_function(self.target):
            return [self.target]
        outputs = differentiable_in(self.outputs())  # they keep the nodes of the graph alive
        types = [type(x) for x in walk(*map(root, outputs)) if isinstance(x, BackwardCFunction)]
        return list(dict.fromkeys(vars(each)["_forward_cls"] for each in types))

    @cached_property
    def gradients(self) -> list[Tensor | None]:
        """The gradient of `total` for each of `leaves`; None for a leaf that is not used."""
        return self.gradients_of(*self.leaves)

    @cached_property
    def seen(self) -> list[Seen]:
        """The recorded calls of the Functions, in one backward pass from `total`."""
        with watched(self.functions) as seen:
            self.gradients_of(*self.leaves)
        return seen

    @cached_property
    def parts(self) -> "list[Study]":
        """One study for each call of a Function; only this study if the target is a Function."""
        if is_function(self.target):
            return [self]
        kept = self.surrogates, self.kind
        return [Study(seen.function, seen.inputs, "", *kept) for seen in self.seen if seen.called]

    @cached_property
    def is_random(self) -> bool:
        """Whether forward draws random numbers from torch's generator."""
        self.is_random = False  # so that `call` below does not set the seed
        state = torch.get_rng_state()
        self.call()
        return not torch.equal(state, torch.get_rng_state())

    @cached_property
    def dtype(self) -> torch.dtype:
        """The dtype in which forward computes: float32 if its results are rounded to float32."""
        outputs = differentiable_in(self.outputs(*changed(self.inputs, lambda x: 0.99 * x)))
        is_single = all(torch.equal(x, x.float().to(x.dtype)) for x in outputs)
        return torch.float32 if is_single else self.kind[0]

    @cached_property
    def measured(self) -> list[quotients.Measured]:
        """The derivative of `total` by each leaf, computed by difference quotients of forward."""
        return list(quotients.measured(self.terms, self.leaves, self.dtype))

    def with_leaves(self, *leaves: Tensor) -> list[Any]:
        """Return `inputs` with the tensors `leaves` in the place of the study's own leaves."""
        others = dict(zip(self.due, leaves, strict=True))
        return [others.get(index, x) for index, x in enumerate(self.inputs)]

    def total(self, *leaves: Tensor) -> Tensor:
        """Return the sum of all numbers in the outputs, each with a weight of its own."""
        return quotients.weighed(self.outputs(*self.with_leaves(*leaves))).sum()

    def terms(self, *leaves: Tensor, constant: bool = False) -> Tensor:
        """Return the summands of `total` that have a derivative or, if `constant`, the others."""
        outputs = self.outputs(*self.with_leaves(*leaves))
        found = (x if x.requires_grad != constant else x.bool() for x in outputs)
        return quotients.weighed(found).detach().cpu()

    def along(self, derivative: Iterable[Tensor | None]) -> Tensor:
        """Return the derivative of `total` along `directions`, from its derivatives by leaves."""
        pairs = zip(derivative, self.directions, strict=True)
        return sum((x * way).sum() for x, way in pairs if x is not None) + torch.zeros(())

    def gradients_of(self, *leaves: Tensor) -> list[Tensor | None]:
        """Return the gradient of `total` with respect to each of the leaves that requires grad."""
        return quotients.gradients(self.total(*leaves), differentiable_in(leaves))


def _kept(modules: Iterable[nn.Module]) -> dict[tuple[nn.Module, str], list[Tensor]]:
    """Return the tensors in attributes of modules, without parameters and buffers."""
    places = ((module, name) for module in modules for name in vars(module))
    torchs = {*vars(nn.Module()), "_flat_weights"}  # `_flat_weights` are an LSTM's parameters
    return {place: tensors_in(getattr(*place)) for place in places if place[1] not in torchs}


def _leaf(x: Any, every: bool, dtype: torch.dtype, device: str) -> Any:
    """Return a leaf with the values of x; x, on `device`, if it is no floating point tensor."""
    if not isinstance(x, Tensor) or not (x.is_floating_point() or x.is_complex()):
        return x.to(device) if isinstance(x, Tensor) else x
    numbers = torch.view_as_real(x.resolve_conj()) if x.is_complex() else x
    return numbers.detach().to(device, dtype).clone().requires_grad_(every or x.requires_grad)
