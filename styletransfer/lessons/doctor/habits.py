"""Probes that check what backward returns, changes and keeps, and memory layouts."""

import gc
import weakref
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain

import torch
from torch import Tensor

from styletransfer.lessons.doctor.quotients import differs, gradients, same, weights_like
from styletransfer.lessons.doctor.study import Layout, Study, differentiable_in
from styletransfer.lessons.doctor.verdicts import Verdict, fault, first_line, note
from styletransfer.lessons.doctor.watch import Seen, is_among, tensors_in


def returned(study: Study) -> Iterator[Verdict]:
    """Has each gradient its input's shape and dtype? Is it the same if no other is computed?"""
    yield from mismatch(study.seen, "shape", "dtype", "device")
    for index, leaf, gradient in zip(study.due, study.leaves, study.gradients, strict=True):
        alone = [x if x is leaf else x.detach() for x in study.leaves]
        said = gradient is not None and differs(partial(study.gradients_of, *alone), [gradient])
        if said:
            text = f"if input {index} alone requires grad: {said}"
            yield fault(text, "look at what depends on ctx.needs_input_grad")
    if any(x.is_sparse for x in tensors_in([seen.grads for seen in study.seen])):
        yield note("sparse: SGD, Adagrad and SparseAdam take it, and few other operations do")


def mismatch(calls: Sequence[Seen], *properties: str) -> Iterator[Verdict]:
    """Yield a fault for each gradient whose property, such as "dtype", is not its input's."""
    zipped = (enumerate(zip(seen.inputs, seen.grads, strict=False)) for seen in calls)
    for index, (x, grad) in chain.from_iterable(zipped):
        for what in properties if isinstance(grad, Tensor) and isinstance(x, Tensor) else ():
            have, want = getattr(grad, what), getattr(x, what)
            if have != want:
                is_error = what == "device" and grad.dim() > 0
                does = "raises an error" if is_error else "changes it silently"
                have, want = (tuple(x) if what == "shape" else x for x in (have, want))
                makes = "sum_to_size(x.shape)" if what == "shape" else f"to(x.{what})"
                text = f"{what} {have} for input {index} of {want}: torch {does}"
                yield fault(text, f"return grad.{makes}, with x the input")


def in_place(study: Study) -> Iterator[Verdict]:
    """Does backward leave grad_output unchanged, and does forward mark inputs that it changes?"""
    if any(seen.spoiled for seen in study.seen):
        text = "grad_output is changed in place: other nodes may receive the same tensor"
        yield fault(text, "change a clone of it")
    for index, x in ((i, seen.inputs[i]) for seen in study.seen for i in seen.changed):
        if x.requires_grad:
            text = f"input {index} is changed in place and not marked: "
            text += "backward is left out for whoever uses the input afterwards"
            yield fault(text, "call ctx.mark_dirty, and return the input", "context")


def kept(study: Study) -> Iterator[Verdict]:
    """Does each call of forward keep what backward needs by `save_for_backward`?"""
    save = partial(fault, change="use ctx.save_for_backward", method="context")
    attributes = [(f"ctx.{name} is", x, seen) for seen in study.seen for name, x in seen.attributes]
    for name, x, seen in attributes:
        if is_among(x, tensors_in(seen.inputs)):
            yield save(f"{name} an input: a later change in place of it is not noticed")
    if any(map(_is_alive, study.parts)):
        for name, x, seen in attributes:
            if is_among(x, tensors_in(seen.result)):
                yield save(f"{name} an output: a reference cycle, freed only by the collector")
        yield save("an output stays in memory: a function on ctx keeps it, or the class")

    def after_another_call() -> Sequence[Tensor | None]:
        total = study.total(*study.leaves)
        study.anew(study.kind, lambda x: 0.99 * x).outputs()
        return gradients(total, study.leaves)

    if said := differs(after_another_call, study.gradients):
        text = f"if forward is called twice before backward: {said}"
        yield fault(text, "keep on ctx what belongs to one call", "context")


def left(study: Study) -> Iterator[Verdict]:
    """Does forward leave tensors in attributes of modules?"""
    if names := [f"{type(module).__name__}.{name}" for module, name in study.left]:
        text = f"forward leaves tensors in {', '.join(names)}, where they stay in memory"
        if any(study.left.values()):
            text += ", with their graphs, which are examined; after func.grad they have none"
        yield note(text, "return them, or read and delete them after each call", "forward")


def _is_alive(study: Study) -> bool:
    """Return whether unused outputs stay in memory while the garbage collector does not run."""
    gc.disable()
    try:
        references = [weakref.ref(x) for x in differentiable_in(study.outputs())]
        return any(reference() is not None for reference in references)
    finally:
        gc.enable()


def _strided(x: Tensor) -> Tensor:
    """Return x stored in memory column by column, with a gap after each number."""
    turned = x.mT if x.dim() > 1 else x
    spaced = torch.stack([turned, turned], -1)[..., 0]
    return spaced.mT if x.dim() > 1 else spaced


# Name of a trial -> the layouts in memory of the inputs and of grad_output.
LAYOUTS: dict[str, tuple[Layout, Layout]] = {
    "strided inputs": (_strided, torch.clone),
    "strided grad_output": (torch.clone, _strided),
    # All elements are one number in memory. Torch stores the gradient of a sum in this way.
    "expanded grad_output": (torch.clone, lambda x: x.mean().expand(x.shape)),
}


def layouts(study: Study) -> Iterator[Verdict]:
    """Is the gradient the same if inputs, or grad_output, have another layout in memory?"""
    grads = tensors_in([seen.grads for seen in study.seen])
    if any(seen.spoiled for seen in study.seen) or any(x.is_sparse for x in grads):
        return  # sparse or changed gradients are not compared
    cure = "use reshape in the place of view, or call contiguous()"
    for name, (layout, grad_output) in LAYOUTS.items():
        outputs = differentiable_in(study.outputs())
        grads = [grad_output(weights_like(x)) for x in outputs]
        dense = [x.clone(memory_format=torch.contiguous_format) for x in grads]
        wanted, method = gradients(outputs, study.leaves, dense), "forward"
        fresh = torch.Generator().manual_seed(1).get_state()
        if study.is_random or not torch.equal(torch.get_rng_state(), fresh):
            return  # the random numbers may depend on the layout
        try:
            outputs = differentiable_in(study.outputs(*study.inputs, layout=layout))
            method = "backward"
            if not same(gradients(outputs, study.leaves, grads), wanted):
                yield fault(f"{name}: another result", cure)
        except Exception as error:
            yield fault(f"{name}: {first_line(error)}", cure, method, error)
