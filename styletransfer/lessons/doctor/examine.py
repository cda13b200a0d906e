"""The doctor's report: `python scripts/gradcheck.py target=relu.py:MyReLU inputs=[4x3]`."""

import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from styletransfer.errors import UserError
from styletransfer.lessons.doctor import elsewhere, habits, probes
from styletransfer.lessons.doctor.quotients import weighed
from styletransfer.lessons.doctor.study import Study
from styletransfer.lessons.doctor.verdicts import Verdict, described, note, place

Probe = Callable[[Study], Iterator[Verdict]]
PROBES: dict[str, Probe] = {
    "backward is called": probes.called,
    "changes in place": habits.in_place,
    "first derivative": probes.first,
    "second derivative": probes.second,
    "gradients returned": habits.returned,
    "kept for backward": habits.kept,
    "left on modules": habits.left,
    "layouts in memory": habits.layouts,
    "low precision": elsewhere.precision,
    "extreme inputs": elsewhere.extremes,
    "on a GPU": elsewhere.device,
    "func.jvp": elsewhere.jvp,
    **{name: partial(elsewhere.whose, ask) for name, ask in elsewhere.ASKED.items()},
    "compile, one graph": elsewhere.undivided,
}
SHAPE = re.compile(r"\d+(x\d+)*")
KINDS = [(dtype, at) for at in ("cpu", "cuda") for dtype in (torch.float64, torch.float32)]
# Text for the table -> a function of the given inputs x. The doctor examines the target at the
# results of the first function for which forward returns neither nan nor inf.
DOMAINS: dict[str, Callable[[Tensor], Tensor]] = {
    "": torch.clone,
    "|x| + 0.5": lambda x: x.abs() + 0.5,
    "tanh(x), between -1 and 1": torch.tanh,
    "sigmoid(x), between 0 and 1": torch.sigmoid,
    "|x| + 1.5": lambda x: x.abs() + 1.5,
}


def report(target: str, inputs: list[str], surrogates: list[str]) -> int:
    """Examine a target and print a table; return 0 if it was examined without a fault, else 1."""
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


def load(target: str, inputs: Sequence[str], surrogates: Sequence[str] = ()) -> Study:
    """Return the study of `target`, FILE.py:NAME; UserError if it is missing or not callable.

    The file's code is run. `inputs` are shapes such as "4x3", for seeded normal values, or names of
    functions in the file, which return inputs. `surrogates` are names of Functions in the file.
    """
    file, _, name = target.rpartition(":")
    path = Path(file).resolve()
    if not file or not path.is_file():
        raise UserError(f"target={target}: give FILE.py:NAME of a file that is there")
    module = ModuleType("styletransfer_target")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses and torch.compile look for it there
    code = partial(compile, path.read_bytes(), str(path), "exec")
    _tried(lambda: exec(code(), vars(module)), f"target={target}: {file} fails")
    found = _named(module, name)
    if isinstance(found, type) and issubclass(found, nn.Module):
        found = _tried(found, f"target={target} cannot be called without arguments")
    for each in surrogates:
        _named(module, each)
    return Study(found, _inputs(module, inputs), name, surrogates)


def _tried(call: Callable[[], Any], fails: str) -> Any:
    """Return the result of `call` under a fixed random seed; UserError if it raises an error."""
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return call()
    except Exception as error:
        raise UserError(f"{fails}: {type(error).__name__}: {error}") from error


def _named(module: ModuleType, name: str) -> Any:
    """Return what a Python file defines as `name`; UserError if it is missing or not callable."""
    found = getattr(module, name, None)
    if not callable(found):
        raise UserError(f"{module.__file__} has no Function, module or function {name!r}")
    return found


def _inputs(module: ModuleType, words: Sequence[str]) -> list[Any]:
    """Return the inputs for words, each a shape or the name of a function that returns inputs."""
    generator = torch.Generator().manual_seed(0)
    found: list[Any] = []
    for word in words:
        if SHAPE.fullmatch(word):
            shape = [int(side) for side in word.split("x")]
            made = torch.randn(shape, generator=generator, dtype=torch.float64)
        else:
            made = _tried(_named(module, word), f"inputs={word} cannot be called without arguments")
        found += made if isinstance(made, tuple | list) else [made]
    return found


@contextmanager
def _quiet() -> Iterator[None]:
    """Show no warnings, and keep the state of the caller's random generator."""
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        yield


def examine(study: Study, probes: Mapping[str, Probe]) -> Iterator[tuple[str, Verdict]]:
    """Yield each probe's name and verdict, up to the first verdict with `is_last`.

    If the given inputs had to be changed, a verdict on the inputs comes first.
    """
    own = [x.detach().requires_grad_(x.requires_grad) for x in study.own.values()]
    study, verdict = _quiet()(ready)(study)
    try:
        if verdict.text:
            yield "inputs", verdict
        for name, probe in probes.items():
            if verdict.is_last:
                return
            verdict = told(probe, study)
            yield name, verdict
    finally:
        study.hold(own)


@_quiet()
def told(probe: Probe, study: Study) -> Verdict:
    """Return a probe's verdict on a study, or on the one Function in it that causes the verdict."""
    try:
        verdict = next(probe(study), Verdict())
    except Exception as error:
        verdict = probes.failed("", error)
    if not verdict.change:
        return verdict
    where = place(study.target, verdict.method, verdict.error)
    placed = replace(verdict, change=f"{where}: {verdict.change}", error=None)
    with suppress(Exception):  # some Functions cannot be called alone
        found = (told(probe, part) for part in study.parts if part is not study)
        return next((each for each in found if each.word == verdict.word), placed)
    return placed


def ready(study: Study) -> tuple[Study, Verdict]:
    """Return the study at inputs that forward accepts, and a verdict if they were changed."""
    errors, kinds = [], KINDS if torch.cuda.is_available() else KINDS[:2]
    for kind in kinds:
        try:
            study.anew(kind).outputs()
            break
        except Exception as error:
            errors.append(error)
    else:
        if len(kinds) == 2 and re.search("cuda|gpu|triton|nvidia", str(errors[0]), re.IGNORECASE):
            said = f"forward asks for a GPU, and there is none: {described(errors[0])}"
            return study, note(said, "examine it on a machine with a GPU", is_last=True)
        return study.anew(KINDS[0]), Verdict()  # the table's first row reports the error
    said = f"examined in {str(kind[0]).removeprefix('torch.')} on {kind[1]}, as forward refuses "
    verdict = note(said + f"float64 on the CPU: {described(errors[0])}") if errors else Verdict()
    change = f"{place(study.target, 'context')}: give inputs=[NAME] of a function in your file, "
    change += "which returns numbers at which forward gives finite ones"
    for words, domain in DOMAINS.items():
        found = study.anew(kind, domain)
        if weighed(found.outputs()).isfinite().all():
            said = f"forward gives nan or inf at the given numbers x: examined at {words}"
            return found, note(said, change) if words else verdict
    said = "forward gives nan or inf at each of the numbers that were tried"
    return study, note(said, change, is_last=True)
