"""The probes of derivatives: is backward called, and are both derivatives right?

A probe ends at the first verdict that it yields. If it yields none, all is right.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import gradcheck, gradgradcheck
from torch.autograd.gradcheck import GradcheckError

from styletransfer.lessons.doctor.study import Study, Verdict, fault, is_function, note, same
from styletransfer.lessons.doctor.watch import Seen, backward_name
from styletransfer.lessons.errors import described, first_line

# gradcheck's step is 1e-6, so a quotient is right to about 1e-10 times the size of the output.
TOLERANCE = 1e-5
CUT = "look for detach, .data, item or NumPy"


def called(study: Study) -> Iterator[Verdict]:
    """Is backward called?"""
    try:
        result = study.call(*study.inputs)
    except Exception as error:
        yield fault(f"forward fails: {described(error)}", is_last=True)
    if not study.differentiable(*study.inputs):
        text = f"the result, a {type(result).__name__}, has no graph: backward is never called"
        change = (
            "return floating point tensors, one or a tuple, not cut by detach, no_grad or NumPy"
        )
        yield fault(text, change, "forward", is_last=True)
    try:
        counts = Counter(dict.fromkeys(study.functions, 0))
        for seen in study.seen:
            counts[seen.function] += seen.called
    except Exception as error:
        yield fault(f"backward fails: {described(error)}", is_last=True)
    if isinstance(study.target, nn.Module) and callable(getattr(study.target, "backward", None)):
        text = "autograd calls no method of a module, whatever its name"
        yield fault(text, f"write a Function for what stands in {study.name}.backward")
    if not counts:
        yield note(
            "no Function is in the graph; if you use one, it is cut off or not called by apply"
        )
    names = ", ".join(f"{each.__name__} {count} x" for each, count in counts.items())
    if not all(counts.values()):
        yield note(f"{names}: from one with 0, no path leads to an input")
    yield Verdict("ok", names)


def first(study: Study) -> Iterator[Verdict]:
    """Is the first derivative that of forward?"""
    if study.is_random:
        text = "forward gives another result when it is called again: gradcheck needs the same one"
        change = "call eval(), or fix the seed inside of forward"
        yield fault(text, change, "forward", is_last=True)
    try:
        _gradcheck(study)
        return
    except GradcheckError as error:
        said = first_line(error).rstrip(",")
    if not is_function(study.target):
        yield fault(f"{said}: the gradient is not the derivative of forward", CUT)
    if "not reentrant" in said:
        text = "backward gives another gradient when it is called again"
        yield fault(text, "change nothing that the next call reads")
    outputs = study.differentiable(*study.with_inputs(lambda x: 0.99 * x))
    is_float32 = all(torch.equal(x, x.to(torch.float32).to(x.dtype)) for x in outputs)
    if is_float32 and study.slope(*study.directions):  # not only steps
        text = "forward computes in float32, where difference quotients are not right to 0.1 %"
        yield fault(text, "compute in the dtype of the inputs", "forward")
    for number, (index, grad) in enumerate(zip(study.due, study.gradients, strict=True)):
        alone = [way * (each == number) for each, way in enumerate(study.directions)]
        if grad is None and abs(study.slope(*alone)) > TOLERANCE:
            text = f"backward returns None for input {index}, which has a derivative"
            yield fault(text, "return its gradient")
    yield fault(f"{said}: backward is not the derivative of forward", "derive the formula again")


def _gradcheck(study: Study) -> None:
    """Check each output alone; all together, if backward cannot do without one of them."""
    settings: dict[str, Any] = {"atol": TOLERANCE, "rtol": TOLERANCE, "check_undefined_grad": False}
    try:
        gradcheck(study.differentiable, study.inputs, **settings)
    except GradcheckError:
        raise
    except Exception:
        gradcheck(study.total, study.inputs, **settings)


def second(study: Study) -> Iterator[Verdict]:
    """Is the second derivative right, or at least refused?"""
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1)
            gradgradcheck(study.differentiable, study.inputs, atol=TOLERANCE)
        return
    except RuntimeError as error:
        said = first_line(error)
    if not re.search("mismatch|not the same|is not independent|expected to be zero", said):
        yield note(f"refused: {said}")
    text = "wrong without an error"
    if not is_function(study.target):
        yield fault(text, CUT)
    (seen, *_), function = study.seen, study.target
    code = getattr(getattr(function, backward_name(function)), "__code__", None)
    if "once_differentiable" in getattr(code, "co_qualname", ""):
        yield fault(
            "wrong, and once_differentiable does not always raise an error",
            "take @once_differentiable away, and begin with "
            "`if torch.is_grad_enabled(): raise ...` (torch.compile drops it)",
        )
    if own := [str(tuple(x.shape)) for x in seen.own if x.is_floating_point()]:
        yield fault(
            f"{text}: it may take what forward saves for a constant ({', '.join(own)})",
            "save inputs or outputs, compute the rest again, and detach nothing",
        )
    yield fault(text, "use operations that autograd can differentiate, on saved tensors")


def returned(study: Study) -> Iterator[Verdict]:
    """Do the gradients have the shapes and dtypes of the inputs, and need none of the others?"""
    yield from mismatch(study.seen, "shape", "dtype", "device")
    for index, leaf, gradient in zip(study.due, study.leaves, study.gradients, strict=True):
        alone = study.with_leaves(*(x if x is leaf else x.detach() for x in study.leaves))
        said = gradient is not None and differs(partial(study.gradients_of, *alone), [gradient])
        if said:
            text = f"if input {index} alone requires grad: {said}"
            yield fault(text, "look at what depends on ctx.needs_input_grad")


def differs(found: Callable[[], Any], wanted: Any) -> str:
    """Return "" if `found()` is like `wanted`; else "another result", or the error of `found`."""
    try:
        return "" if same(found(), wanted) else "another result"
    except Exception as error:
        return first_line(error)


def mismatch(calls: Sequence[Seen], *properties: str) -> Iterator[Verdict]:
    """Yield each gradient of which a property, such as "dtype", is not that of its input."""
    for seen in calls:
        for index, (x, grad) in enumerate(zip(seen.inputs, seen.grads, strict=False)):
            if not isinstance(grad, Tensor) or not isinstance(x, Tensor):
                continue
            for what in properties:
                have, want = getattr(grad, what), getattr(x, what)
                if have != want:
                    is_error = what == "device" and grad.dim() > 0
                    does = "raises an error" if is_error else "changes it silently"
                    have, want = (tuple(x) if what == "shape" else x for x in (have, want))
                    text = f"{what} {have} for input {index} of {want}: torch {does}"
                    yield fault(text, f"return {want}")


def undefined(study: Study) -> Iterator[Verdict]:
    """Does backward work if an output is not used?"""
    if any(isinstance(seen.result, tuple) for seen in study.seen):
        try:
            # atol=inf accepts any finite number: another row of the report checks the numbers.
            gradcheck(study.differentiable, study.inputs, atol=math.inf)
        except Exception as error:
            text = f"fails if an output is not used: {described(error)}"
            yield fault(text, "after set_materialize_grads(False) it receives None")
