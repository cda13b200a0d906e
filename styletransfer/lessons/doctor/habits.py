"""Probes of a user's autograd Function; the probes of its derivatives are in probes.py.

They look at changes in place, kept memory, layouts, empty inputs, low precision and kinks.
"""

import gc
import weakref
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from styletransfer.lessons.doctor.probes import first_line, mismatch
from styletransfer.lessons.doctor.study import Study, Verdict, same
from styletransfer.lessons.doctor.subject import differentiable_in, tensors_in
from styletransfer.lessons.doctor.watch import Seen, context_name, watched


def grad_output(study: Study) -> Verdict:
    """Does backward leave grad_output alone?"""
    if not any(seen.spoiled for seen in study.seen):
        return Verdict()
    return Verdict(
        "FAULT",
        "grad_output is changed in place: other nodes may receive the same tensor",
        f"{study.place()}: change a clone of it",
    )


def marked(study: Study) -> Verdict:
    """Does forward mark the inputs that it changes in place?"""
    for seen in study.seen:
        place = study.place(context_name(seen.function))
        for index in seen.changed:
            return Verdict(
                "FAULT",
                f"input {index} is changed in place and not marked: "
                "backward is left out for whoever uses the input afterwards",
                f"{place}: call ctx.mark_dirty, and return the input",
            )
    return Verdict()


def kept(study: Study) -> Verdict:
    """What is kept for backward, and by whom?"""
    for seen in study.seen:
        cure = f"{study.place(context_name(seen.function))}: use ctx.save_for_backward"
        for name, tensors in seen.attributes.items():
            if _is_any(tensors, tensors_in(seen.result)) and _is_alive(study):
                text = f"ctx.{name} is an output: a reference cycle, freed only by the collector"
                return Verdict("FAULT", text, cure)
            if _is_any(tensors, tensors_in(seen.inputs)):
                text = f"ctx.{name} is an input: a later change in place of it is not noticed"
                return Verdict("FAULT", text, cure)
    count = sum(x.numel() * x.element_size() for seen in study.seen for x in _own(seen))
    return Verdict("ok", f"{count} bytes beside inputs and outputs")


def _is_any(tensors: list[Tensor], others: list[Tensor]) -> bool:
    return any(x is other for x in tensors for other in others)


def _own(seen: Seen) -> list[Tensor]:
    """Return the kept tensors that share no memory with inputs and outputs."""
    known = {_memory(x) for x in tensors_in([seen.inputs, seen.result])}
    return [x for x in seen.kept if _memory(x) not in known]


def _memory(x: Tensor) -> int:
    """Return where the whole memory of x begins, of which a view has a part."""
    return x.untyped_storage().data_ptr()


def _is_alive(study: Study) -> bool:
    """Return whether an output outlives its last name while no collector runs."""
    gc.collect()
    gc.disable()
    try:
        outputs = tensors_in(study.subject.call(*study.subject.inputs))
        references = [weakref.ref(x) for x in outputs]
        del outputs
        return any(reference() is not None for reference in references)
    finally:
        gc.enable()


def _strided(x: Tensor) -> Tensor:
    """Return x with a gap after each number in memory."""
    return torch.stack([x, x], -1)[..., 0]


def _transposed(x: Tensor) -> Tensor:
    return x.mT.contiguous().mT if x.dim() > 1 else _strided(x)


LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {"strided": _strided, "transposed": _transposed}


def _expanded(x: Tensor) -> Tensor:
    """Return ones in the shape of x that share one number in memory, as the gradient of a sum."""
    return torch.ones((), dtype=x.dtype).expand(x.shape)


def layouts(study: Study) -> Verdict:
    """Is the gradient the same for other layouts in memory, of inputs and of grad_output?"""
    cure = f"{study.place()}: use reshape in the place of view, or call contiguous()"
    for name, change in LAYOUTS.items():
        try:
            found = study.gradients_of(*study.with_inputs(change, own=False))
        except Exception as error:
            return Verdict("FAULT", f"{name} inputs: {first_line(error)}", cure)
        if not same(found, study.gradients):
            return Verdict("FAULT", f"another gradient for {name} inputs", cure)
    if any(seen.spoiled for seen in study.seen):
        # Backward changes grad_output in place, which torch refuses for an expanded tensor. Another
        # row of the report has this fault.
        return Verdict()
    plain = _gradients(study, torch.ones_like)
    grad_outputs = {"expanded": _expanded} | LAYOUTS
    for name, change in grad_outputs.items():
        try:
            found = _gradients(study, lambda x, to=change: to(torch.ones_like(x)))  # type: ignore[misc]
        except Exception as error:
            return Verdict("FAULT", f"{name} grad_output: {first_line(error)}", cure)
        if not same(found, plain):
            return Verdict("FAULT", f"another gradient for {name} grad_output", cure)
    return Verdict()


def _gradients(study: Study, grad_output: Callable[[Tensor], Tensor]) -> list[Tensor | None]:
    """Return the gradients for grad_outputs that are made of the outputs."""
    outputs = study.subject.differentiable(*study.subject.inputs)
    grads = [grad_output(x.detach()) for x in outputs]
    return list(torch.autograd.grad(outputs, study.leaves, grads, allow_unused=True))


def empty(study: Study) -> Verdict:
    """Does backward take what forward takes, if the first sides are 0?"""
    inputs = study.with_inputs(lambda x: x[:0].clone() if x.dim() else x.clone(), own=False)
    try:
        total = study.total(*inputs)
    except Exception as error:
        return Verdict("note", f"forward refuses them: {first_line(error)}")
    try:
        torch.autograd.grad(total, differentiable_in(inputs), allow_unused=True)
    except Exception as error:
        change = f"{study.place()}: return empty gradients for empty inputs"
        return Verdict("FAULT", f"only backward refuses them: {first_line(error)}", change)
    return Verdict()


def precision(study: Study) -> Verdict:
    """Does backward work in float32, bfloat16 and float16, with gradients that are finite?"""
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        name = str(dtype).removeprefix("torch.")
        inputs = study.with_inputs(lambda x, to=dtype: x.to(to))  # type: ignore[misc]
        with watched(study.functions) as calls:
            try:
                outputs = study.subject.differentiable(*inputs)
            except Exception as error:
                return Verdict("note", f"forward refuses {name}: {first_line(error)}")
            try:
                total = torch.stack([x.double().mean() for x in outputs]).sum()
                found = torch.autograd.grad(total, differentiable_in(inputs), allow_unused=True)
            except Exception as error:
                return Verdict("FAULT", f"only backward refuses {name}: {first_line(error)}")
        wrong = mismatch(study, calls)
        if wrong.text:
            return wrong
        if not all(x is None or bool(x.isfinite().all()) for x in found):
            change = f"{study.place()}: compute in float32 what becomes too large"
            return Verdict("FAULT", f"not finite in {name}", change)
    return Verdict()


# Functions of torch, and where each has a kink.
KINKS: dict[Callable[[Tensor], Tensor], tuple[float, ...]] = {
    functional.relu: (0,),
    functional.relu6: (0, 6),
    functional.leaky_relu: (0,),
    functional.selu: (0,),
    torch.abs: (0,),
    functional.hardtanh: (-1, 1),
    functional.hardswish: (-3, 3),
    functional.hardsigmoid: (-3, 3),
    functional.softshrink: (-0.5, 0.5),
    functional.hardshrink: (-0.5, 0.5),
}


def kinks(study: Study) -> Verdict:
    """Is the value at a kink that of torch's own function?"""
    if len(study.subject.inputs) != 1 or study.subject.inputs[0].numel() == 0:
        return Verdict()
    x = study.subject.inputs[0]
    # These values tell the functions apart.
    points = (-9, -3, -1, -0.25, 0, 0.25, 1, 3, 6, 9)
    wide = [x.detach(), *(torch.full_like(x, point) for point in points)]
    for torchs, places in KINKS.items():
        try:
            alike = all(torch.equal(study.subject.call(at.clone()), torchs(at)) for at in wide)
        except Exception:
            return Verdict()
        for place in places if alike else ():
            at = torch.full_like(x, place).requires_grad_()
            (ours,) = torch.autograd.grad(study.subject.call(at).sum(), at)
            (theirs,) = torch.autograd.grad(torchs(at).sum(), at)
            if not torch.equal(ours, theirs):
                values = [each.flatten()[0].item() for each in (at, ours, theirs)]
                name = torchs.__name__
                return Verdict(
                    "note",
                    f"at {values[0]:g} the slope is {values[1]:g}, that of torch's {name} is "
                    f"{values[2]:g}",
                    f"{study.place()}: decide what happens at {values[0]:g}, as < or <= do",
                )
    return Verdict()
