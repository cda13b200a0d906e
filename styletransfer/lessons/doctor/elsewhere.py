"""Probes under other conditions: other inputs, low precision, a GPU, torch.func, torch.compile."""

import inspect
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from styletransfer.lessons.doctor.habits import mismatch
from styletransfer.lessons.doctor.quotients import differences, gradients, same, weighed
from styletransfer.lessons.doctor.study import Study, changed, differentiable_in
from styletransfer.lessons.doctor.verdicts import Verdict, cure, described, fault, first_line, note
from styletransfer.lessons.doctor.watch import is_function, scaled, tensors_in, watched

HALVES = torch.bfloat16, torch.float16


def precision(study: Study) -> Iterator[Verdict]:
    """Does backward accept low precision, return float32 for float32, work under autocast?"""
    change = "compute there in float32, and return the dtype of the input"
    for dtype in (torch.float32, *(() if any(study.is_complex) else HALVES)):
        with watched(study.functions) as calls:
            who, error = _refused(study, dtype, nullcontext())
        if error:
            said = f"{who} refuses {str(dtype).removeprefix('torch.')}: {first_line(error)}"
            yield note(said) if who == "forward" else fault(said, change, error=error)
        if dtype == torch.float32:
            yield from mismatch(calls, "dtype")
    devices = [inspect.getclosurevars(x.backward).nonlocals for x in study.functions]
    who, error = _refused(study, torch.float32, torch.autocast("cpu", torch.bfloat16))
    if who != "forward" and error and all(x.get("device_type", "cpu") == "cpu" for x in devices):
        said = f"{who} refuses what autocast makes of forward: {first_line(error)}"
        change = "decorate a forward with ctx by torch.amp.custom_fwd, and backward by custom_bwd"
        yield note(said, change, error=error)


def _refused(
    study: Study, dtype: torch.dtype, context: AbstractContextManager[Any]
) -> tuple[str, Exception | None]:
    """Return who raises an error for inputs of a dtype, forward or only backward, and the error."""
    inputs, who = changed(study.inputs, partial(Tensor.to, dtype=dtype)), "forward"
    try:
        with context:
            total = weighed(study.outputs(*inputs)).sum()
        who = "only backward"
        gradients(total, differentiable_in(inputs))
    except Exception as error:
        return who, error
    return who, None


def extremes(study: Study) -> Iterator[Verdict]:
    """Is the gradient finite where the result of forward is finite?"""
    sizes = changed(study.inputs, lambda x: x.abs().float())
    # At these inputs a formula may compute inf / inf or 0 / 0, which is nan.
    for name, factor in {"large": 1000, "large negative": -1000, "zero": 0}.items():
        inputs = changed(sizes, partial(torch.mul, other=factor))
        try:
            result = weighed(study.outputs(*inputs))
            found = gradients(result.sum(), differentiable_in(inputs))
        except Exception:
            continue  # other probes report errors
        if weighed(found).isnan().any() and result.isfinite().all():
            text = f"nan for {name} inputs in float32, where the result of forward is finite"
            change = "write a form that divides by no inf or 0, as x.sigmoid() for e^x / (1 + e^x)"
            yield fault(text, change)


def device(study: Study) -> Iterator[Verdict]:
    """Does the target run without reading numbers on the host? A CUDA graph cannot read them."""
    for part in [study] if isinstance(study.target, nn.Module) else study.parts:
        if any(x.layout is not torch.strided for x in tensors_in(part.inputs)):
            return  # the meta device has no sparse tensors
        there = part.anew((part.kind[0], "meta"))
        try:
            there.gradients_of(*there.leaves)
        except Exception as error:
            said = first_line(error).partition(". ")[0]
            text = f"needs numbers on the host, or a tensor on the CPU: {said}"
            change = "use torch.where, x.new_zeros and other operations of torch: a GPU waits for "
            change += "the host, and a CUDA graph cannot capture it"
            yield note(text, change, error=error)


def func_grad(study: Study) -> Callable[..., tuple[Tensor, ...]]:
    """Return the function that computes the gradients by `torch.func.grad`."""
    return torch.func.grad(study.total, argnums=tuple(range(len(study.leaves))))


def compiled(study: Study) -> Sequence[Tensor | None]:
    """Return the gradients of the compiled target; aot_eager differentiates as inductor does."""
    torch.compiler.reset()
    logging.getLogger("torch._dynamo").setLevel(logging.ERROR)  # another probe reports warnings
    total = torch.compile(study.total, backend="aot_eager")(*study.leaves)
    return torch.autograd.grad(total, study.leaves, allow_unused=True)


ASKED: dict[str, Callable[[Study], Sequence[Tensor | None]]] = {
    "func.grad": lambda study: func_grad(study)(*study.leaves),
    "vmap of func.grad": lambda study: [  # the batch has one item
        x[0] for x in torch.func.vmap(func_grad(study))(*(x[None] for x in study.leaves))
    ],
    "compile": compiled,
}


def undivided(study: Study) -> Iterator[Verdict]:
    """Does `torch.compile` make one graph of the whole target?"""
    study = study.anew(study.kind)
    study.is_random = False  # the call of torch.manual_seed would divide the graph
    torch.compiler.reset()
    try:
        torch.compile(study.call, backend="eager", fullgraph=True)(*study.inputs)
    except Exception as error:
        said = re.search("Explanation: (.+)", str(error))
        text = f"torch.compile divides it: {said[1] if said else first_line(error)}"
        yield note(text, "take this out of forward and backward", "forward", error)


def whose(ask: Callable[[Study], Any], study: Study) -> Iterator[Verdict]:
    """Does `ask` return the gradient of the user's backward, or that of forward's operations?"""
    if not study.functions:
        yield Verdict("ok", "there is no Function in the graph")
    try:
        with scaled(study.functions):
            ours, found = study.gradients_of(*study.leaves), ask(study)
    except Exception as error:
        yield note(f"refused: {cure(error, described(error))}")
    if same(found, ours):
        yield Verdict("ok", "yours")
    if study.is_random:
        yield note("not told: forward may draw other random numbers there")
    if not differences(study.measured, found):
        yield note("forward's: your backward is not called")
    yield fault("neither yours nor forward's", "look for what is another under this call")


def jvp(study: Study) -> Iterator[Verdict]:
    """Is there a derivative in forward mode, and is it the derivative of forward?"""
    try:
        found: Tensor = torch.func.jvp(study.total, study.leaves, study.directions)[1]
    except Exception as error:
        yield note(f"refused: {cure(error, described(error))}")
    is_told = study.name in study.surrogates or not is_function(study.target)
    if is_told and same([found], [study.along(study.gradients)]):
        return  # it equals the derivative by backward, which `first` checks
    rows = study.measured
    if not same([found], [study.along(row.value for row in rows)], rows[0].tolerance):
        change = "return the derivative of forward times the tangents"
        yield fault("not the derivative of forward", change, "jvp")
