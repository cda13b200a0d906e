"""Probes: do torch.func and torch.compile call your backward, or differentiate your forward?"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
from torch import Tensor

from styletransfer.lessons.doctor.probes import differs
from styletransfer.lessons.doctor.quotients import STEPS
from styletransfer.lessons.doctor.study import Study, same
from styletransfer.lessons.doctor.verdicts import Verdict, fault, is_function, note
from styletransfer.lessons.doctor.watch import scaled
from styletransfer.lessons.errors import described

# What each hand-written backward returns is multiplied by this, but torch's own derivative of
# forward is not. So the size of a gradient tells which of the two was used.
FACTOR = 1.5

# What is missing, by a word of torch's message.
MISSING = {
    "setup_context staticmethod": "a forward without ctx, and a setup_context",
    "must implement the jvp": "a jvp",
    "vmap support": "a vmap, or generate_vmap_rule = True",
}


def refused(error: Exception) -> Verdict:
    """Return that a call is refused, and what is missing or the first line of torch's message."""
    said = described(error)
    missing = (f"it needs {missing}" for words, missing in MISSING.items() if words in said)
    return note(f"refused: {next(missing, said)}")


def func_grad(study: Study) -> Callable[..., tuple[Tensor, ...]]:
    """Return the function that computes the gradients by `torch.func.grad`."""
    return torch.func.grad(study.total_at, argnums=tuple(range(len(study.leaves))))


def func_vmap(study: Study) -> Sequence[Tensor | None]:
    """Return the gradients by `torch.func.vmap` of `torch.func.grad`, for a batch of one."""
    batches = [x[None] for x in study.leaves]
    return [x[0] for x in torch.func.vmap(func_grad(study))(*batches)]


def compiled(backend: str, study: Study) -> Sequence[Tensor | None]:
    """Return the gradients of the compiled subject."""
    torch.compiler.reset()
    try:
        total = torch.compile(study.total, backend=backend)(*study.inputs)
        return torch.autograd.grad(total, study.leaves, allow_unused=True)
    finally:
        torch.compiler.reset()


Ask = Callable[[Study], Sequence[Tensor | None]]
ASKED: dict[str, Ask] = {
    "func.grad": lambda study: func_grad(study)(*study.leaves),
    "vmap of func.grad": func_vmap,
    "compile, aot_eager": partial(compiled, "aot_eager"),
    "compile, inductor": partial(compiled, "inductor"),
}


def whose(ask: Ask, study: Study) -> Iterator[Verdict]:
    """Does `ask` get the gradient of the reader's backward, or of forward's operations?"""
    if not study.functions:
        yield Verdict("ok", "there is no Function in the graph")
    try:
        with scaled(study.functions, FACTOR):
            ours, found = study.gradients_of(*study.inputs), ask(study)
    except Exception as error:
        yield refused(error)
    if same(found, ours):
        yield Verdict("ok", "yours")
    if is_slope(study, _along(study, found)):
        yield note("forward's: your backward is not called")
    yield fault("neither yours nor forward's", "look for what is another under this call")


def is_slope(study: Study, found: Tensor | float) -> bool:
    """Return whether this is the derivative of forward in the study's directions."""
    tolerance = STEPS[study.dtype][1]
    return math.isclose(float(found), study.slope, rel_tol=tolerance, abs_tol=tolerance)


def _along(study: Study, found: Sequence[Tensor | None]) -> float:
    """Return the derivative in the study's directions, by gradients."""
    pairs = zip(found, study.directions, strict=True)
    return sum(float((x * way).sum()) for x, way in pairs if x is not None)


def jvp(study: Study) -> Iterator[Verdict]:
    """Is there a derivative in forward mode, and is it that of forward?"""
    try:
        found: Tensor = torch.func.jvp(study.total_at, study.leaves, study.directions)[1]
    except Exception as error:
        yield refused(error)
    is_told = study.name in study.surrogates or not is_function(study.target)
    if is_told and same([found], [torch.tensor(_along(study, study.gradients))]):
        return  # that of backward: if it is wrong, the first derivative tells it
    if not is_slope(study, found):
        change = "return the derivative of forward times the tangents"
        yield fault("not the derivative of forward", change, "jvp")


def vmap(study: Study) -> Iterator[Verdict]:
    """Are the results of two examples in a batch those of each alone?"""
    leaves, count = study.leaves, len(study.leaves)
    try:
        torch.func.vmap(study.total_at)(*(torch.stack([x, x]) for x in leaves))
    except Exception as error:
        yield refused(error)
    ways: dict[str, list[int | None]] = {
        "in the first dimension": [0] * count,
        "in the last dimension": [-1] * count,
    }
    for number, index in enumerate(study.due if count > 1 else ()):
        way = f"of input {index}, which share the other inputs"
        ways[way] = [0 if each == number else None for each in range(count)]
    for way, dims in ways.items():
        pairs = [(x, x if dim is None else 0.99 * x) for x, dim in zip(leaves, dims, strict=True)]
        alone = [study.total_at(*each) for each in zip(*pairs, strict=True)]
        batches = [
            pair[0] if dim is None else torch.stack(pair, dim)
            for pair, dim in zip(pairs, dims, strict=True)
        ]
        batched = torch.func.vmap(study.total_at, in_dims=tuple(dims))
        if said := differs(partial(batched, *batches), alone):
            is_generated = getattr(study.target, "generate_vmap_rule", False)
            yield fault(
                f"two examples {way}: {said}",
                "compute each example as forward does, take them from dimension in_dims[i] of "
                "input i, if that is not None, and return the dimension that they have in the "
                "result",
                "forward" if is_generated else "vmap",
            )
