"""Checks what learners write into the files of `exercises/`, and gives a hint if it is wrong."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from traceback import extract_tb
from typing import Any

import torch

from styletransfer.lessons.doctor.examine import PROBES, examine
from styletransfer.lessons.doctor.probes import MEANT
from styletransfer.lessons.doctor.study import Study
from styletransfer.lessons.doctor.verdicts import cure, described

__tracebackhide__ = True  # pytest shows no line of this file


class UnsolvedError(AssertionError):
    """An UnsolvedError says, in a few lines, what is wrong in an exercise that is not solved."""


def hint(is_wrong: bool, text: str) -> None:
    """Raise an UnsolvedError with the message `text` if `is_wrong` is True."""
    if is_wrong:
        raise UnsolvedError(text)


def leaf(*values: float) -> torch.Tensor:
    """Return a tensor of these values, in float64, that requires grad."""
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def equal(found: Any, wanted: Sequence[Any], what: str) -> None:
    """Raise an UnsolvedError if `found`, one value or a sequence, does not equal `wanted`."""
    each = found if isinstance(found, tuple | list) else (found,)
    values = [x.tolist() if isinstance(x, torch.Tensor) else x for x in each]
    shown = values if isinstance(found, tuple | list) else values[0]
    hint(shown != wanted, f"{what} has to be {wanted}, and is {shown}.")


def call(function: Callable[..., Any], *inputs: Any, hints: Mapping[str, str] | None = None) -> Any:
    """Call `function`; if it raises an error with a known message, raise an UnsolvedError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*inputs)
    except Exception as error:
        if text := cure(error, "", hints):
            raise UnsolvedError(f"{described(error)}\n{text}") from error
        raise


def doctor(target: Any, *inputs: Any, asked: Sequence[str] = ()) -> None:
    """Raise an UnsolvedError if a probe finds a fault, or if one named in `asked` is not "ok"."""
    # The probes of torch.compile are left out, because they take seconds.
    probes = {name: probe for name, probe in PROBES.items() if "compile" not in name}
    for name, verdict in examine(Study(target, inputs), probes):
        is_wrong = verdict.word == "FAULT" or (name in asked and verdict.word != "ok")
        change = verdict.change.partition(MEANT)[0]
        hint(is_wrong, f"{name}: {verdict.text}\n{change}".rstrip())


def check(test: Callable[[], None]) -> None:
    """Run the test of an exercise and print the result; exit with status 1 if it is not solved."""
    path = Path(test.__code__.co_filename)
    title = str(test.__globals__["__doc__"]).partition("\n")[0]
    try:
        test()
    except Exception as error:
        said = str(error)
        if not isinstance(error, UnsolvedError):
            lines = [x.lineno for x in extract_tb(error.__traceback__) if x.filename == str(path)]
            said = f"line {lines[-1]}: {described(error)}"
        print(f"{title} Not yet.")
        print(f"    {said}".replace("\n", "\n    "))
        raise SystemExit(1) from None
    following = sorted(each for each in path.parent.glob("[01]*.py") if each.name > path.name)
    print(f"{title} Right.", *(f"Next: {each.name}" for each in following[:1]))
