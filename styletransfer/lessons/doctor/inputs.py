"""Finds inputs at which a target can be examined: what it takes, and where it is defined."""

import re
from collections.abc import Callable

import torch
from torch import Tensor

from styletransfer.lessons.doctor.quotients import weighed
from styletransfer.lessons.doctor.study import Study
from styletransfer.lessons.doctor.verdicts import Verdict, note, place
from styletransfer.lessons.errors import described

KINDS = [(dtype, at) for at in ("cpu", "cuda") for dtype in (torch.float64, torch.float32)]
# What is tried if forward gives nan or inf for the numbers x that are given.
DOMAINS: dict[str, Callable[[Tensor], Tensor]] = {
    "|x| + 0.5": lambda x: x.abs() + 0.5,
    "tanh(x), between -1 and 1": torch.tanh,
    "sigmoid(x), between 0 and 1": torch.sigmoid,
    "|x| + 1.5": lambda x: x.abs() + 1.5,
    "-|x| - 0.5": lambda x: -x.abs() - 0.5,
}


def _is_finite(study: Study) -> bool:
    return bool(weighed(study.outputs(*study.inputs)).isfinite().all())


def ready(study: Study) -> tuple[Study, Verdict]:
    """Return the study at inputs that can be examined, and what of them had to be changed."""
    errors, kinds = [], KINDS if torch.cuda.is_available() else KINDS[:2]
    for kind in kinds:
        try:
            found = study.anew(kind)
            is_finite = _is_finite(found)
            break
        except Exception as error:
            errors.append(error)
    else:
        if len(kinds) == 2 and re.search("cuda|gpu|triton|nvidia", str(errors[0]), re.IGNORECASE):
            said = f"forward asks for a GPU, and there is none: {described(errors[0])}"
            return study, note(said, "examine it on a machine with a GPU", is_last=True)
        return study.anew(KINDS[0]), Verdict()  # the first row tells the error
    dtype, device = found.kind
    said = f"examined in {str(dtype).removeprefix('torch.')} on {device}, as forward refuses "
    verdict = note(said + f"float64 on the CPU: {described(errors[0])}") if errors else Verdict()
    if is_finite:
        return found, verdict
    at = f"{place(found.target, 'context')}: give inputs=[NAME] of a function in your file, "
    for words, change in DOMAINS.items():
        inside = found.anew(found.kind, change)
        if _is_finite(inside):
            said = f"forward gives nan or inf at the given numbers x: examined at {words}"
            return inside, note(said, f"{at}which returns such numbers")
    said = "forward gives nan or inf at each of the numbers that were tried"
    return found, note(said, f"{at}at which it gives finite numbers", is_last=True)
