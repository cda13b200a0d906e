"""The probes of derivatives: is backward called, and are both derivatives right?"""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.autograd import gradcheck, gradgradcheck
from torch.autograd.gradcheck import GradcheckError

from styletransfer.lessons.doctor.study import Study, Verdict
from styletransfer.lessons.doctor.subject import is_function, requires_grad
from styletransfer.lessons.doctor.watch import Seen, backward_name

# gradcheck's step is 1e-6, so a quotient is right to about 1e-10 times the size of the output.
TOLERANCE = 1e-5
CUT = "look for detach, .data, item or NumPy"
RANDOM = Verdict(
    "FAULT",
    "forward gives another result when it is called again: gradcheck needs the same one",
    "call eval(), or fix the seed inside of forward",
)


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].strip()


def called(study: Study) -> Verdict:
    """Is backward called?"""
    target = study.subject.target
    if isinstance(target, nn.Module) and callable(getattr(target, "backward", None)):
        return Verdict(
            "FAULT",
            "autograd calls no method of a module, whatever its name",
            f"write a Function for what stands in {type(target).__name__}.backward",
        )
    if not study.functions:
        text = "no Function is in the graph; if you use one, it is cut off or not called by apply"
        return Verdict("note", text)
    calls = dict.fromkeys(study.functions, 0)
    for seen in study.seen:
        calls[seen.function] += seen.called
    names = ", ".join(f"{each.__name__} {count} x" for each, count in calls.items())
    if not all(calls.values()):
        return Verdict("note", f"{names}: from one with 0, no path leads to an input")
    return Verdict("ok", names)


def first(study: Study) -> Verdict:
    """Is the first derivative that of forward?"""
    if study.is_random:
        return RANDOM
    said = _gradcheck(study)
    return _wrong(study, said) if said else Verdict()


def _gradcheck(study: Study) -> str:
    """Return what gradcheck says of each output alone, "" if all is right.

    If backward cannot do without one of them, all outputs are checked together.
    """

    def check(function: Callable[..., Any]) -> None:
        settings: dict[str, Any] = {"atol": TOLERANCE, "rtol": TOLERANCE}
        gradcheck(function, study.subject.inputs, check_undefined_grad=False, **settings)

    try:
        try:
            check(study.subject.differentiable)
        except GradcheckError:
            raise
        except Exception:
            check(study.total)
    except RuntimeError as error:
        return first_line(error).rstrip(",")
    return ""


def _wrong(study: Study, said: str) -> Verdict:
    """Return what is wrong with the first derivative."""
    if not is_function(study.subject.target):
        text = f"{said}: the gradient is not the derivative of forward"
        return Verdict("FAULT", text, f"{study.place()}: {CUT}")
    due = (i for i, x in enumerate(study.subject.inputs) if requires_grad(x))
    for index, grad, slope in zip(due, study.gradients, study.slopes, strict=True):
        if grad is None and bool((slope.abs() > TOLERANCE).any()):
            text = f"backward returns None for input {index}, which has a derivative"
            return Verdict("FAULT", text, f"{study.place()}: return its gradient")
    text = f"{said}: backward is not the derivative of forward"
    return Verdict("FAULT", text, f"{study.place()}: derive the formula again")


def second(study: Study) -> Verdict:
    """Is the second derivative right, or at least refused?"""
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1)
            gradgradcheck(study.subject.differentiable, study.subject.inputs, atol=TOLERANCE)
        return Verdict()
    except RuntimeError as error:
        said = first_line(error)
    if not re.search("mismatch|not the same|is not independent", said):
        return Verdict("note", f"refused: {said}")
    text, change = "wrong without an error", CUT
    if is_function(study.subject.target):
        text, change = _second_cure(study.seen[0])
    return Verdict("FAULT", text, f"{study.place()}: {change}")


def _second_cure(seen: Seen) -> tuple[str, str]:
    """Return what makes the second derivative of a Function wrong, and what to do about it."""
    backward = getattr(seen.function, backward_name(seen.function))
    code = getattr(backward, "__code__", None)
    if "once_differentiable" in getattr(code, "co_qualname", ""):
        return (
            "wrong, and once_differentiable does not always raise an error",
            "take @once_differentiable away, and begin with "
            "`if torch.is_grad_enabled(): raise ...` (torch.compile drops it)",
        )
    if seen.intermediates:
        shapes = ", ".join(str(tuple(x.shape)) for x in seen.intermediates)
        return (
            f"wrong without an error: it may take what forward saves for a constant ({shapes})",
            "save inputs or outputs, compute the rest again, and detach nothing",
        )
    change = "use operations that autograd can differentiate, on saved tensors"
    return "wrong without an error", change


def returned(study: Study) -> Verdict:
    """Do the gradients have the shapes and dtypes of the inputs?"""
    return mismatch(study, study.seen)


def mismatch(study: Study, calls: Sequence[Seen]) -> Verdict:
    """Return the first gradient whose shape, dtype or device is not that of its input."""
    for seen in calls:
        for index, (x, grad) in enumerate(zip(seen.inputs, seen.grads, strict=False)):
            if not isinstance(grad, torch.Tensor) or not isinstance(x, torch.Tensor):
                continue
            for what in ("shape", "dtype", "device"):
                if getattr(grad, what) != getattr(x, what):
                    have, want = (_word(getattr(each, what)) for each in (grad, x))
                    is_error = what == "device" and grad.dim() > 0
                    does = "raises an error" if is_error else "changes it silently"
                    return Verdict(
                        "FAULT",
                        f"{what} {have} for input {index} of {want}: torch {does}",
                        f"{study.place()}: return {want}",
                    )
    return Verdict()


def _word(value: object) -> str:
    return str(tuple(value)) if isinstance(value, torch.Size) else str(value)


def undefined(study: Study) -> Verdict:
    """Does backward work if an output is not used?"""
    if not any(isinstance(seen.result, tuple) for seen in study.seen):
        return Verdict()
    try:
        # atol=inf accepts any finite number: another row of the report checks the numbers.
        gradcheck(study.subject.differentiable, study.subject.inputs, atol=math.inf)
    except Exception as error:
        return Verdict(
            "FAULT",
            f"fails if an output is not used: {type(error).__name__}: {first_line(error)}",
            f"{study.place()}: after set_materialize_grads(False) it receives None",
        )
    return Verdict()
