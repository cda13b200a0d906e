"""The doctor's report: `python scripts/gradcheck.py target=relu.py:MyReLU inputs=[4x3]`."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial

from styletransfer.lessons.doctor import asks, habits, probes
from styletransfer.lessons.doctor.load import load
from styletransfer.lessons.doctor.study import Study, Verdict, fault
from styletransfer.lessons.errors import described

Probe = Callable[[Study], Iterator[Verdict]]
PROBES: dict[str, Probe] = {
    "backward is called": probes.called,
    "first derivative": probes.first,
    "second derivative": probes.second,
    "gradients returned": probes.returned,
    "unused outputs": probes.undefined,
    "grad_output": habits.grad_output,
    "inputs in place": habits.marked,
    "kept for backward": habits.kept,
    "layouts in memory": habits.layouts,
    "empty inputs": habits.empty,
    "low precision": habits.precision,
    "kinks": habits.kinks,
    "func.jvp": asks.jvp,
    "func.vmap": asks.vmap,
    **{name: partial(asks.whose, ask) for name, ask in asks.ASKED.items()},
}


def examine(study: Study, probes: Mapping[str, Probe]) -> Iterator[tuple[str, Verdict]]:
    """Yield each probe's name and verdict; only the first ones if the others cannot be told."""
    for name, probe in probes.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            verdict = told(probe, study)
        yield name, verdict
        if verdict.is_last:
            return


def told(probe: Probe, study: Study) -> Verdict:
    """Return what a probe says of a study, or of the Function that alone has the same fault."""
    try:
        verdict = next(probe(study), Verdict())
    except Exception as error:
        return fault(described(error))
    if not verdict.change:
        return verdict
    placed = replace(verdict, change=f"{study.place(verdict.method)}: {verdict.change}")
    with suppress(Exception):  # a Function that cannot be called alone
        found = (told(probe, part) for part in study.parts if part is not study)
        return next((each for each in found if each.word == verdict.word), placed)
    return placed


def report(target: str, inputs: list[str]) -> int:
    """Print the table of a target; return 1 if it has a fault, else 0 (UserError: no target)."""
    study = load(target, inputs)
    faults = 0
    print(f"{study.name}, with inputs {', '.join(inputs)}")
    for name, verdict in examine(study, PROBES):
        faults += verdict.word == "FAULT"
        print(f"{name:<19} {verdict.word:<5} {verdict.text}".rstrip(), flush=True)
        if verdict.change:
            print(f"{'':<25} change: {verdict.change}")
    print("no fault" if not faults else f"{faults} faults" if faults > 1 else "1 fault")
    return 1 if faults else 0
