"""The doctor's report: `python scripts/gradcheck.py target=relu.py:MyReLU inputs=[4x3]`."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import itemgetter

import torch

from styletransfer.lessons.doctor import asks, habits, probes, values
from styletransfer.lessons.doctor.inputs import ready
from styletransfer.lessons.doctor.load import load
from styletransfer.lessons.doctor.study import Study
from styletransfer.lessons.doctor.verdicts import Verdict, place

Probe = Callable[[Study], Iterator[Verdict]]
PROBES: dict[str, Probe] = {
    "backward is called": probes.called,
    "first derivative": probes.first,
    "second derivative": probes.second,
    "gradients returned": habits.returned,
    "unused outputs": habits.undefined,
    "grad_output": habits.grad_output,
    "inputs in place": habits.marked,
    "kept for backward": habits.kept,
    "layouts in memory": habits.layouts,
    "empty inputs": values.empty,
    "low precision": values.precision,
    "extreme inputs": values.extremes,
    "on a GPU": values.device,
    "func.jvp": asks.jvp,
    "func.vmap": asks.vmap,
    **{name: partial(asks.whose, ask) for name, ask in asks.ASKED.items()},
}


def examine(study: Study, probes: Mapping[str, Probe]) -> Iterator[tuple[str, Verdict]]:
    """Yield each probe's name and verdict; only the first ones if the others cannot be told.

    Before them is a verdict on the inputs, if other ones than those given had to be taken.
    """
    with _quiet():
        study, verdict = ready(study)
    if verdict.text:
        yield "inputs", verdict
    for name, probe in probes.items():
        if verdict.is_last:
            return
        with _quiet():
            verdict = told(probe, study)
        yield name, verdict


@contextmanager
def _quiet() -> Iterator[None]:
    """Show no warnings, and leave the caller's random numbers as they are."""
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        yield


def told(probe: Probe, study: Study) -> Verdict:
    """Return what a probe says of a study, or of the Function that alone has the same fault."""
    try:
        verdict = next(probe(study), Verdict())
    except Exception as error:
        verdict = probes.failed("", error)
    if not verdict.change:
        return verdict
    where = place(study.target, verdict.method, verdict.error)
    placed = replace(verdict, change=f"{where}: {verdict.change}", error=None)
    with suppress(Exception):  # a Function that cannot be called alone
        found = (told(probe, part) for part in study.parts if part is not study)
        return next((each for each in found if each.word == verdict.word), placed)
    return placed


def report(target: str, inputs: list[str], surrogates: list[str]) -> int:
    """Print the table of a target; return 1 if it has a fault, else 0 (UserError: no target)."""
    study = load(target, inputs, surrogates)
    faults, verdict = 0, Verdict()
    print(f"{study.name}, with inputs {', '.join(inputs)}")
    for verdict, rows in groupby(examine(study, PROBES), key=itemgetter(1)):
        names = [name for name, _ in rows]
        for name in names if verdict.word == "ok" else [", ".join(names)]:
            print(f"{name:<19} {verdict.word:<5} {verdict.text}".rstrip(), flush=True)
        faults += verdict.word == "FAULT"
        if verdict.change:
            print(f"{'':<25} change: {verdict.change}")
    if verdict.is_last and not faults:
        print("not examined")
        return 1
    print("no fault" if not faults else f"{faults} faults" if faults > 1 else "1 fault")
    return 1 if faults else 0
