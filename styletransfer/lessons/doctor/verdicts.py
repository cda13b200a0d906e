"""Verdicts, which the doctor's probes report, and the line of code that a verdict is about."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from traceback import extract_tb
from typing import Any

from torch import nn

from styletransfer.lessons.doctor.watch import is_function, method_of


@dataclass(frozen=True)
class Verdict:
    """A verdict is the result of one probe: ok, a note, or a fault with advice."""

    word: str = "ok"  #: "ok", "note" (good to know) or "FAULT" (has to be changed)
    text: str = ""  #: what was found
    change: str = ""  #: what to change
    method: str = "backward"  #: the method to change; "context" is the one that fills `ctx`
    error: BaseException | None = None  #: the error that the method raised, if any
    is_last: bool = False  #: whether no other probe can run after this


# Words of torch's error message -> what to change.
CURES = {
    "incorrect number of gradients": "return a gradient for each input of forward, and None for "
    "one that is no tensor",
    "invalid gradient": "return gradients in the order, and with the shapes, of forward's inputs",
    "setup_context staticmethod": "it needs a forward without ctx, and a setup_context",
    "must implement the jvp": "it needs a jvp",
    "vmap support": "it needs a vmap, or generate_vmap_rule = True",
}
note, fault = partial(Verdict, "note"), partial(Verdict, "FAULT")


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].strip()


def described(error: BaseException) -> str:
    """Return the type and first line of an error, or of the error that torch.compile wrapped."""
    error = getattr(error, "inner_exception", error)
    return f"{type(error).__name__}: {first_line(error)}"


def cure(error: BaseException, other: str, hints: Mapping[str, str] | None = None) -> str:
    """Return the advice of `hints` or CURES for the words in an error's message, or `other`."""
    known = [*(hints or {}).items(), *CURES.items()]
    return next((text for words, text in known if words in described(error)), other)


def place(of: Any, method: str, error: BaseException | None = None) -> str:
    """Return the line to change, or the line of `error`, such as "relu.py:14, ReLU.backward"."""
    owner, code = getattr(of, "__name__", type(of).__name__), of
    name = owner
    if is_function(of):
        method = method_of(of, method)
        name, code = f"{owner}.{method}", getattr(of, method)
    elif isinstance(of, nn.Module):
        name, code = f"{owner}.forward", type(of).forward
    try:
        code = inspect.unwrap(code)
        file, line = str(inspect.getsourcefile(code)), inspect.getsourcelines(code)[1]
    except (OSError, TypeError):
        return name
    # For code that torch.compile compiles, `real_stack` has the lines.
    for frame in getattr(error, "real_stack", extract_tb(getattr(error, "__traceback__", None))):
        if frame.filename == file:
            line = frame.lineno or line
            name = f"{owner}.{frame.name}" if hasattr(of, frame.name) else name
    return f"{Path(file).name}:{line}, {name}"
