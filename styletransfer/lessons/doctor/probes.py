"""The probes of derivatives: is backward called, and are both derivatives right?"""

import math
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.autograd.gradcheck import GradcheckError

from styletransfer.lessons.doctor.study import Study, Verdict, is_module
from styletransfer.lessons.doctor.watch import Seen, backward_name

# gradcheck's step is 1e-6, so a quotient is right to about 1e-10 times the size of the output.
TOLERANCE = 1e-5


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].strip()


def called(study: Study) -> Verdict:
    """Is backward called?"""
    target = study.subject.target
    if is_module(study) and callable(getattr(target, "backward", None)):
        return Verdict(
            "FAULT",
            "autograd calls no method of a module, whatever its name",
            f"write a Function for what stands in {type(target).__name__}.backward",
        )
    missed = [function for function in study.functions if not _calls(study, function)]
    for function in missed:
        return Verdict("FAULT", f"{function.__name__}.{backward_name(function)} was not called")
    names = ", ".join(f"{each.__name__} {_calls(study, each)} x" for each in study.functions)
    return Verdict("ok", names or "there is no Function in the graph")


def _calls(study: Study, function: object) -> int:
    return sum(seen.called for seen in study.seen if seen.function is function)


def first(study: Study) -> Verdict:
    """Is the first derivative that of forward?"""
    for seen in study.seen:
        for index, (due, grad) in enumerate(zip(seen.needed, seen.grads, strict=False)):
            if due and grad is None and not _passes_alone(study):
                return Verdict(
                    "FAULT",
                    f"backward returns None for input {index}, which has a derivative",
                    f"{study.place(seen=seen)}: return its gradient",
                )
    try:
        _gradcheck(study)
    except RuntimeError as error:
        return Verdict(
            "FAULT",
            f"{first_line(error).rstrip(',')}: backward is not the derivative of forward",
            f"{study.place()}: derive the formula again",
        )
    return Verdict()


def _gradcheck(study: Study) -> bool:
    """Check each output alone; all of them together if backward cannot do without one."""

    def check(function: Callable[..., Any]) -> bool:
        return gradcheck(
            function,
            study.subject.inputs,
            atol=TOLERANCE,
            rtol=TOLERANCE,
            check_undefined_grad=False,
        )

    try:
        return check(study.subject.differentiable)
    except GradcheckError:
        raise
    except Exception:
        return check(study.total)


def _passes_alone(study: Study) -> bool:
    try:
        return _gradcheck(study)
    except RuntimeError:
        return False


def second(study: Study) -> Verdict:
    """Is the second derivative right, or at least refused?"""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(1)
                gradgradcheck(study.subject.differentiable, study.subject.inputs, atol=TOLERANCE)
            return Verdict()
        except RuntimeError as error:
            said = first_line(error)
    if not re.search("mismatch|not the same|is not independent", said):
        return Verdict("note", f"refused: {said}")
    for seen in study.seen:
        cure = _second_cure(study, seen)
        if cure is not None:
            return cure
    return Verdict(
        "FAULT",
        "wrong without an error",
        f"{study.place()}: use operations that autograd can differentiate, on saved tensors",
    )


def _second_cure(study: Study, seen: Seen) -> Verdict | None:
    backward = getattr(seen.function, backward_name(seen.function))
    code = getattr(backward, "__code__", None)
    if "once_differentiable" in getattr(code, "co_qualname", ""):
        return Verdict(
            "FAULT",
            "wrong, and once_differentiable does not always raise an error",
            f"{study.place(seen=seen)}: take @once_differentiable away, and begin with "
            "`if torch.is_grad_enabled(): raise ...` (torch.compile drops it)",
        )
    if seen.intermediates:
        shapes = ", ".join(str(tuple(x.shape)) for x in seen.intermediates)
        return Verdict(
            "FAULT",
            f"wrong without an error: what forward saves is a constant for it ({shapes})",
            f"{study.place(seen=seen)}: save inputs or outputs, and compute the rest again",
        )
    return None


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
                        f"{study.place(seen=seen)}: return {want}",
                    )
    return Verdict()


def _word(value: object) -> str:
    return str(tuple(value)) if isinstance(value, torch.Size) else str(value)


def undefined(study: Study) -> Verdict:
    """Does backward work if an output is not used?"""
    several = [seen for seen in study.seen if isinstance(seen.result, tuple)]
    for seen in several:
        try:
            # With atol=inf no number is wrong, since that is the matter of another row.
            gradcheck(study.subject.differentiable, study.subject.inputs, atol=math.inf)
        except Exception as error:
            return Verdict(
                "FAULT",
                f"fails if an output is not used: {type(error).__name__}: {first_line(error)}",
                f"{study.place(seen=seen)}: after set_materialize_grads(False) it receives None",
            )
    return Verdict()
