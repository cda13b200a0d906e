"""Probes: do torch.func and torch.compile call your backward, or differentiate your forward?"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
from torch import Tensor

from styletransfer.lessons.doctor.quotients import same
from styletransfer.lessons.doctor.study import Study
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
    if study.is_random:
        yield note("not told: forward may draw other random numbers there")
    if is_forwards(study, study.along(found)):
        yield note("forward's: your backward is not called")
    yield fault("neither yours nor forward's", "look for what is another under this call")


def is_forwards(study: Study, found: Tensor) -> bool:
    """Return whether this is the derivative of forward in the study's directions."""
    rows = study.measured
    return same([found], [study.along(row.value for row in rows)], rows[0].tolerance)


def jvp(study: Study) -> Iterator[Verdict]:
    """Is there a derivative in forward mode, and is it that of forward?"""
    try:
        found: Tensor = torch.func.jvp(study.total_at, study.leaves, study.directions)[1]
    except Exception as error:
        yield refused(error)
    is_told = study.name in study.surrogates or not is_function(study.target)
    if is_told and same([found], [study.along(study.gradients)]):
        return  # that of backward: if it is wrong, the first derivative tells it
    if not is_forwards(study, found):
        change = "return the derivative of forward times the tangents"
        yield fault("not the derivative of forward", change, "jvp")


def vmap(study: Study) -> Iterator[Verdict]:
    """Are the results of two examples in a batch those of each alone?"""
    leaves, count = study.leaves, len(study.leaves)
    dims: list[list[int | None]] = [[0] * count, [-1] * count]
    dims += [[0 if i == one else None for i in range(count)] for one in range(count)]
    for each in dims:
        ways = list(zip(leaves, each, strict=True))
        batches = [x if dim is None else torch.stack([x, 0.99 * x], dim) for x, dim in ways]
        others = [x if dim is None else 0.99 * x for x, dim in ways]
        try:
            found = torch.func.vmap(study.total_at, tuple(each))(*batches)
            alone = study.total_at(*leaves), study.total_at(*others)
            said = "" if same(found, alone) else "another result"
        except Exception as error:
            if each is dims[0]:
                yield refused(error)
            said = described(error)
        if said:
            change = "return what forward returns for each alone, and the dimension of the examples"
            is_generated = getattr(study.target, "generate_vmap_rule", False)
            method = "forward" if is_generated else "vmap"
            yield fault(f"two examples, in_dims {tuple(each)}: {said}", change, method)
