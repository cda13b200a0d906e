"""A verdict is what a probe of the doctor reports; `place` finds the line of code it is about."""

import inspect
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from traceback import extract_tb
from typing import Any

from torch import nn
from torch.autograd import Function

from styletransfer.lessons.doctor.watch import backward_name, context_name


@dataclass(frozen=True)
class Verdict:
    """A verdict is what a probe says."""

    word: str = "ok"  #: "ok"; "note": good to know; "FAULT": to be changed
    text: str = ""  #: what was found
    change: str = ""  #: what to change
    method: str = "backward"  #: where; "context" is the method that fills `ctx`
    error: BaseException | None = None  #: that a line of the method has raised
    is_last: bool = False  #: whether other probes cannot tell anything


note, fault = partial(Verdict, "note"), partial(Verdict, "FAULT")


def is_function(target: Any) -> bool:
    """Return whether the target is a class of `torch.autograd.Function`."""
    return isinstance(target, type) and issubclass(target, Function)


def place(of: Any, method: str, error: BaseException | None = None) -> str:
    """Return where a target is to be changed, "relu.py:14, ReLU.backward", or raised an error."""
    name, code = getattr(of, "__name__", type(of).__name__), of
    if is_function(of):
        method = {"backward": backward_name(of), "context": context_name(of)}.get(method, method)
        name, code = f"{name}.{method}", getattr(of, method)
    elif isinstance(of, nn.Module):
        name, code = f"{name}.forward", type(of).forward
    try:
        code = inspect.unwrap(code)
        file, line = str(inspect.getsourcefile(code)), inspect.getsourcelines(code)[1]
    except (OSError, TypeError):
        return name
    raised = extract_tb(error.__traceback__) if error else []
    lines = [line, *(x.lineno for x in raised if x.filename == file)]
    return f"{Path(file).name}:{lines[-1]}, {name}"
