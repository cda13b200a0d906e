"""Probes that check derivatives: is backward called, are first and second derivative right?

A probe ends at the first verdict that it yields. If it yields none, all is right.
"""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from styletransfer.lessons.doctor.quotients import (
    differences,
    differs,
    gradients,
    measured,
    same,
    weighed,
    weights_like,
)
from styletransfer.lessons.doctor.study import Study, differentiable_in
from styletransfer.lessons.doctor.verdicts import Verdict, cure, described, fault, first_line, note
from styletransfer.lessons.doctor.watch import is_function, method_of

CUT = "look for detach, .data, item or NumPy"
MEANT = "; if that is meant, say surrogates="


def failed(what: str, error: Exception, change: str = "", **options: Any) -> Verdict:
    """Return a fault for an `error` of the examined code; its text begins with `what`.

    Its advice is `cure`'s for this error, or else `change`.
    """
    return fault(f"{what}{described(error)}", cure(error, change), error=error, **options)


def called(study: Study) -> Iterator[Verdict]:
    """Is backward called?"""
    try:
        result, outputs = study.call(), differentiable_in(study.outputs())
    except Exception as error:
        change = "this raises the error; give inputs that it takes"
        yield failed("forward fails: ", error, change, method="forward", is_last=True)
    if not outputs:
        text = f"the result, a {type(result).__name__}, has no graph: backward is never called"
        change = "return floats, a tensor or a tuple of them, not cut by detach, no_grad or NumPy"
        yield fault(text, change, "forward", is_last=True)
    try:
        counts = Counter(dict.fromkeys(study.functions, 0))
        for seen in study.seen:
            counts[seen.function] += seen.called
    except Exception as error:
        yield failed("backward fails: ", error, "this raises the error", is_last=True)
    if isinstance(study.target, nn.Module) and callable(getattr(study.target, "backward", None)):
        text = "autograd does not know of a module's method backward, and never calls it"
        yield fault(text, f"write a Function for what stands in {study.name}.backward")
    if not counts:
        text = "no Function is in the graph; if you use one, it is cut off or not called by apply"
        yield note(text)
    names = ", ".join(f"{each.__name__} {count} x" for each, count in counts.items())
    if not all(counts.values()):
        yield note(f"{names}: from one with 0, no path leads to an input")
    yield Verdict("ok", names)


def first(study: Study) -> Iterator[Verdict]:
    """Is the gradient of backward the first derivative of forward?"""
    last = partial(fault, is_last=True)
    one, other = ([weighed(study.outputs())] for _ in range(2))
    if not same(one, other):
        text = "forward gives another result when it is called again"
        yield last(text, "take the same numbers each time", "forward")
    if weighed(study.gradients).isnan().any():
        text = "backward gives nan where the result of forward is finite"
        yield last(text, "replace the divisor by 1 where it is 0, and the quotient by its limit")
    total = study.total(*study.leaves)
    once = gradients(total, study.leaves, retain_graph=True)
    seed = 1 if study.surrogates else 2
    if said := differs(partial(gradients, total, study.leaves, seed=seed, retain_graph=True), once):
        change = "change, delete and draw at random nothing that the gradient depends on"
        yield last(f"if backward is called again: {said}", change)
    if not same(gradients(0 * total, study.leaves), [None] * len(once)):
        text = "backward ignores grad_output: for one of zeros the gradient is not 0"
        yield fault(text, "multiply by grad_output, which may be any number")
    others = [part for part in study.parts if part.name not in study.surrogates]
    for part in others:
        rows = measured(partial(part.terms, constant=True), part.leaves, part.dtype)
        if differences(rows, [None] * len(part.leaves)):
            text = "an output that is marked as non-differentiable changes with the inputs"
            change = f"leave it out of mark_non_differentiable{MEANT}[{part.name}]"
            yield fault(text, change, "context")
    if len(others) < len(study.parts):
        for part in others:
            yield from _unlike(part)
        yield Verdict("ok", f"not compared for {', '.join(study.surrogates)}, as you say")
    yield from _unlike(study)


def _unlike(study: Study) -> Iterator[Verdict]:
    """Yield a fault for each gradient that is not forward's derivative: how far off, and why."""
    found = differences(study.measured, study.gradients)
    for number, difference in found.items():
        index = study.due[number]
        text = f"the gradient of {study.names[index]} {difference}"
        change = "derive the formula again"
        if study.gradients[number] is None:
            text = f"backward returns None for input {index}, which has a derivative"
            change = "return its gradient"
        elif difference.factor is not None:
            text += _size(study, difference.factor)
            change = f"multiply it by {1 / difference.factor:.5g}"
        elif study.is_complex[index]:
            change += ", and multiply by the conjugate of what was saved, x.conj()"
        rest = [study.names[study.due[each]] for each in found if each != number]
        text += f"; also wrong is that of {', '.join(rest)}" if rest else ""
        change += f"{MEANT}[{study.name}]"
        yield fault(text, change if is_function(study.target) else CUT)
    if unclear := sum(int((~row.is_clear).sum()) for row in study.measured):
        text = f"at {unclear} numbers forward has a jump or a kink, or changes too fast to tell"
        yield note(text, "give other inputs", "context")
    if study.dtype == torch.float32 and any(bool(row.value.any()) for row in study.measured):
        yield note("forward computes in float32: compared to 0.1 %")


def _size(study: Study, factor: float) -> str:
    """Return words that explain a wrong factor: by a size of inputs or outputs, or by the sign."""
    tensors = [x for x in (*study.inputs, *study.outputs()) if isinstance(x, Tensor)]
    for size in sorted({size for x in tensors for size in (*x.shape, x.numel()) if size > 2}):
        if abs(factor * size - 1) < 1e-3:
            return f": a mean, or a division by the size {size}, in place of a sum"
        if abs(factor / size - 1) < 1e-3:
            return f": a sum in place of a mean, or of a division by the size {size}"
    return ": the sign" if abs(factor + 1) < 1e-3 else ""


def second(study: Study) -> Iterator[Verdict]:
    """Is the second derivative right, or does it at least raise an error?"""
    is_wrong = differences(study.measured, study.gradients)
    if is_wrong and not is_function(study.target):
        for part in study.parts:  # as the first derivative is wrong, examine each Function alone
            yield from second(part)
        return
    outputs, count = differentiable_in(study.outputs()), len(study.leaves)
    weights = [weights_like(x, index) for index, x in enumerate(outputs)]

    def slopes(*values: Tensor, **options: bool) -> Tensor:
        leaves = values[:count]
        of = differentiable_in(study.outputs(*study.with_leaves(*leaves)))
        grads = values[count:] or weights
        return weighed(gradients(of, leaves, grads, materialize_grads=True, **options))

    # First grad_output is a constant; then the derivative by grad_output is computed as well.
    for grads in ([], [x.clone().requires_grad_() for x in weights]):
        values = [*study.leaves, *grads]
        try:
            total = slopes(*values, create_graph=True).sum()
            found = gradients(total, values) if total.requires_grad else [None] * len(values)
        except Exception as error:
            yield note(f"refused: {first_line(error)}")
        if differences(measured(slopes, values, study.dtype), found):
            yield _second_fault(study)


def _second_fault(study: Study) -> Verdict:
    """Return a fault that says why the second derivative may be wrong."""
    text, function = "wrong without an error", study.target
    if not is_function(function):
        return fault(text, CUT)
    code = getattr(getattr(function, method_of(function, "backward")), "__code__", None)
    if "once_differentiable" in getattr(code, "co_qualname", ""):
        text = "wrong, and once_differentiable does not always raise an error"
        guard = "`if torch.is_grad_enabled(): raise ...`, first in backward"
        return fault(text, f"replace @once_differentiable by {guard} (torch.compile drops it)")
    own = [str(tuple(x.shape)) for x in study.seen[0].own if x.is_floating_point()]
    if not own:
        return fault(text, "use operations that autograd can differentiate, on saved tensors")
    text += f": it may take what forward saves for a constant ({', '.join(own)})"
    return fault(text, "save inputs or outputs, compute the rest again, and detach nothing")
