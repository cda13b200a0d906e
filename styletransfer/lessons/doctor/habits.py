"""Probes of a user's autograd Function; the probes of its derivatives are in probes.py.

They look at changes in place, kept memory, layouts, empty inputs, low precision and kinks.
"""

import gc
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from styletransfer.lessons.doctor.probes import differs, mismatch
from styletransfer.lessons.doctor.study import (
    Layout,
    Study,
    Verdict,
    differentiable_in,
    fault,
    note,
    weights_like,
)
from styletransfer.lessons.doctor.watch import Seen, is_among, tensors_in, watched
from styletransfer.lessons.errors import first_line


def grad_output(study: Study) -> Iterator[Verdict]:
    """Does backward leave grad_output alone?"""
    if any(seen.spoiled for seen in study.seen):
        text = "grad_output is changed in place: other nodes may receive the same tensor"
        yield fault(text, "change a clone of it")


def marked(study: Study) -> Iterator[Verdict]:
    """Does forward mark the inputs that it changes in place?"""
    for index in (index for seen in study.seen for index in seen.changed):
        yield fault(
            f"input {index} is changed in place and not marked: "
            "backward is left out for whoever uses the input afterwards",
            "call ctx.mark_dirty, and return the input",
            "context",
        )


def kept(study: Study) -> Iterator[Verdict]:
    """What is kept for backward, and by whom?"""
    attributes = [
        (f"ctx.{name} is", x, seen)
        for seen in study.seen
        for name, tensors in seen.attributes.items()
        for x in tensors
    ]
    change = "use ctx.save_for_backward"
    for name, x, seen in attributes:
        if is_among(x, tensors_in(seen.inputs)):
            text = f"{name} an input: a later change in place of it is not noticed"
            yield fault(text, change, "context")
    if any(map(_is_alive, study.parts)):
        for name, x, seen in attributes:
            if is_among(x, tensors_in(seen.result)):
                text = f"{name} an output: a reference cycle, freed only by the collector"
                yield fault(text, change, "context")
        text = "an output stays in memory: a function on ctx keeps it, or the class"
        yield fault(text, change, "context")
    if said := differs(partial(_after_another_call, study), study.gradients):
        text = f"if forward is called twice before backward: {said}"
        yield fault(text, "keep on ctx what belongs to one call", "context")
    yield Verdict("ok", f"{sum(map(_own_bytes, study.seen))} bytes beside inputs and outputs")


def _is_alive(study: Study) -> bool:
    """Return whether an output outlives its last name while no collector runs."""
    gc.disable()
    try:
        references = [weakref.ref(x) for x in study.differentiable(*study.inputs)]
        return any(reference() is not None for reference in references)
    finally:
        gc.enable()


def _after_another_call(study: Study) -> Sequence[Tensor | None]:
    """Return the gradients of a first call, after forward was called at other inputs."""
    total = study.total(*study.inputs)
    study.total(*study.with_inputs(lambda x: 0.99 * x))
    return torch.autograd.grad(total, study.leaves, allow_unused=True)


def _own_bytes(seen: Seen) -> int:
    """Return the bytes of what is kept, without views of inputs and outputs."""
    known = {x.untyped_storage().data_ptr() for x in tensors_in([seen.inputs, seen.result])}
    return sum(x.nbytes for x in seen.own if x.untyped_storage().data_ptr() not in known)


def _strided(x: Tensor) -> Tensor:
    """Return x with a gap after each number in memory."""
    return torch.stack([x, x], -1)[..., 0]


def _transposed(x: Tensor) -> Tensor:
    return x.mT.clone(memory_format=torch.contiguous_format).mT if x.dim() > 1 else _strided(x)


def _expanded(x: Tensor) -> Tensor:
    """Return a tensor in the shape of x with one number in memory, as the gradient of a sum."""
    return x.mean().expand(x.shape)


# The layouts in memory that are tried: of inputs, and of grad_output.
LAYOUTS: dict[str, tuple[Layout, Layout]] = {
    "strided inputs": (_strided, torch.clone),
    "transposed inputs": (_transposed, torch.clone),
    "strided grad_output": (torch.clone, _strided),
    "transposed grad_output": (torch.clone, _transposed),
    "expanded grad_output": (torch.clone, _expanded),
}


def layouts(study: Study) -> Iterator[Verdict]:
    """Is the gradient the same for other layouts in memory, of inputs and of grad_output?"""

    def gradients(layout: Layout, grad_output: Layout, is_dense: bool) -> Sequence[Tensor | None]:
        outputs = study.differentiable(*study.inputs, layout=layout)
        grads = [grad_output(weights_like(x)) for x in outputs]
        grads = [x.contiguous() for x in grads] if is_dense else grads
        return torch.autograd.grad(outputs, study.leaves, grads, allow_unused=True)

    for name, (layout, grad_output) in LAYOUTS.items():
        if grad_output is _expanded and any(seen.spoiled for seen in study.seen):
            return  # torch lets nobody change it in place, and another row has this fault
        wanted = gradients(torch.clone, grad_output, is_dense=True)
        if said := differs(partial(gradients, layout, grad_output, is_dense=False), wanted):
            cure = "use reshape in the place of view, or call contiguous()"
            yield fault(f"{name}: {said}", cure)


def _refused(study: Study, inputs: Sequence[Any], what: str, change: str = "") -> Iterator[Verdict]:
    """Does forward, or only backward, raise an error for these inputs?"""
    try:
        total = study.total(*inputs)
    except Exception as error:
        yield note(f"forward refuses {what}: {first_line(error)}")
        return
    try:
        torch.autograd.grad(total, differentiable_in(inputs), allow_unused=True)
    except Exception as error:
        yield fault(f"only backward refuses {what}: {first_line(error)}", change)


def empty(study: Study) -> Iterator[Verdict]:
    """Does backward take what forward takes, if there are no examples?

    The first side of the first leaf becomes 0, and the first sides of others that are as long.
    """
    size = study.leaves[0].shape[:1]
    inputs = study.with_inputs(lambda x: x[:0].clone() if size and x.shape[:1] == size else x)
    yield from _refused(study, inputs, "them", "return empty gradients for empty inputs")


def precision(study: Study) -> Iterator[Verdict]:
    """Does backward work in float32, bfloat16 and float16, with gradients that are finite?"""
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        name = str(dtype).removeprefix("torch.")
        inputs = study.with_inputs(partial(Tensor.to, dtype=dtype))
        with watched(study.functions) as calls:
            refused = list(_refused(study, inputs, name))
        yield from refused
        yield from mismatch(calls, "dtype")
        if not all(bool(x.isfinite().all()) for seen in calls for x in tensors_in(seen.grads)):
            yield fault(f"not finite in {name}", "compute in float32 what becomes too large")


# Functions of torch, and where each has a kink.
KINKS: dict[Callable[[Tensor], Tensor], tuple[float, ...]] = {
    functional.relu: (0,),
    functional.relu6: (0, 6),
    functional.leaky_relu: (0,),
    functional.selu: (0,),
    torch.abs: (0,),
    functional.hardtanh: (-1, 1),
    functional.hardswish: (-3, 3),
    functional.hardsigmoid: (-3, 3),
    functional.softshrink: (-0.5, 0.5),
    functional.hardshrink: (-0.5, 0.5),
}
POINTS = (-9, -3, -1, -0.25, 0, 0.25, 1, 3, 6, 9)  # here their values tell them apart


def kinks(study: Study) -> Iterator[Verdict]:
    """Is the value at a kink that of torch's own function?"""
    if len(study.inputs) != 1:
        return
    (x,) = study.leaves
    wide = [x.detach(), *(torch.full_like(x, point) for point in POINTS)]

    def slope(function: Callable[..., Any], place: float) -> float:
        at = torch.full_like(x, place).requires_grad_()
        return torch.autograd.grad(function(at).sum(), at)[0].flatten()[0].item()

    for torchs, places in KINKS.items():
        try:
            is_it = all(torch.equal(study.call(at.clone()), torchs(at)) for at in wide)
        except Exception:
            return
        for place in places if is_it else ():
            ours, theirs = (slope(each, place) for each in (study.call, torchs))
            if ours != theirs:
                text = f"at {place:g} the slope is {ours:g}, that of torch's {torchs.__name__} is"
                change = f"decide what happens at {place:g}, as < or <= do"
                yield note(f"{text} {theirs:g}", change)
