"""Probes of other inputs: empty, in low precision, under autocast, large, 0, on a GPU."""

import inspect
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from styletransfer.lessons.doctor.habits import mismatch
from styletransfer.lessons.doctor.quotients import gradients, weighed
from styletransfer.lessons.doctor.study import Study, differentiable_in
from styletransfer.lessons.doctor.verdicts import Verdict, fault, note
from styletransfer.lessons.doctor.watch import tensors_in, watched
from styletransfer.lessons.errors import first_line


def _refused(
    study: Study,
    inputs: Sequence[Any],
    what: str,
    change: str,
    context: AbstractContextManager[Any] | None = None,
) -> Iterator[Verdict]:
    """Does forward, or only backward, raise an error for these inputs?"""
    try:
        with context or nullcontext():
            total = study.total(*inputs)
    except Exception as error:
        yield note(f"forward refuses {what}: {first_line(error)}")
        return
    try:
        gradients(total, differentiable_in(inputs))
    except Exception as error:
        yield fault(f"only backward refuses {what}: {first_line(error)}", change, error=error)


def empty(study: Study) -> Iterator[Verdict]:
    """Does backward take what forward takes, if there are no examples?

    The first side of the first leaf becomes 0, and the first sides of others that are as long.
    """
    size = study.leaves[0].shape[:1]
    if size and study.due[0] < len(study.given):
        inputs = study.with_inputs(lambda x: x[:0].clone() if x.shape[:1] == size else x)
        yield from _refused(study, inputs, "them", "treat a size of 0 as any other size")


def precision(study: Study) -> Iterator[Verdict]:
    """Does backward keep dtypes and finite numbers in low precision, and under autocast?"""
    halves = () if any(study.is_complex) else (torch.bfloat16, torch.float16)
    for dtype in (torch.float32, *halves):
        name = str(dtype).removeprefix("torch.")
        inputs = study.with_inputs(partial(Tensor.to, dtype=dtype))
        change = "compute there in float32, and return the dtype of the input"
        with watched(study.functions) as calls:
            refused = list(_refused(study, inputs, name, change))
        yield from refused
        yield from mismatch(calls, "dtype")
        finite = [
            all(bool(x.isfinite().all()) for x in tensors_in(values) if x.is_floating_point())
            for values in ([x.result for x in calls], [x.grads for x in calls])
        ]
        if finite == [True, False]:
            yield fault(f"not finite in {name}", "compute in float32 what becomes too large")
    devices = [inspect.getclosurevars(x.backward).nonlocals for x in study.functions]
    if all(names.get("device_type", "cpu") == "cpu" for names in devices):
        inputs = study.with_inputs(Tensor.float)
        cure = "decorate forward by torch.amp.custom_fwd, and backward by torch.amp.custom_bwd"
        autocast = torch.autocast("cpu", torch.bfloat16)
        for each in _refused(study, inputs, "what autocast makes of forward", cure, autocast):
            if each.change:
                yield replace(each, word="note")


def _scaled(factor: float, x: Tensor) -> Tensor:
    return factor * x.abs().float()


def extremes(study: Study) -> Iterator[Verdict]:
    """Is the gradient a number where the result is one?"""
    # There a quotient of two large numbers, or of two zeros, becomes nan.
    for name, factor in {"large": 1000, "large negative": -1000, "zero": 0}.items():
        inputs = study.with_inputs(partial(_scaled, factor))
        try:
            result = weighed(study.outputs(*inputs))
            found = gradients(result.sum(), differentiable_in(inputs))
        except Exception:
            continue  # other rows tell what is refused
        is_nan = any(x is not None and bool(x.isnan().any()) for x in found)
        if is_nan and bool(result.isfinite().all()):
            text = f"nan for {name} inputs in float32, where the result of forward is finite"
            cure = "write a form that divides by no inf or 0, as x.sigmoid() for e^x / (1 + e^x)"
            yield fault(text, cure)


def device(study: Study) -> Iterator[Verdict]:
    """Does a device that keeps its numbers to itself do, as a captured graph needs it?"""
    for part in [study] if isinstance(study.target, nn.Module) else study.parts:
        inputs = [
            x.detach().to("meta").requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x
            for x in part.inputs
        ]
        method = "context"
        try:
            total = part.total(*inputs)
            method = "backward"
            gradients(total, differentiable_in(inputs))
        except Exception as error:
            said = first_line(error).partition(". ")[0]
            text = f"needs numbers on the host, or a tensor on the CPU: {said}"
            change = "a GPU waits for this, and a CUDA graph cannot capture it"
            yield note(text, change, method, error)
