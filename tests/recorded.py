"""A stand-in for a CUDA graph: operations are recorded once, and a replay repeats them.

As with a CUDA graph, a replay calls no Python of the project. It repeats the recorded operations
with the same numbers, on the same memory. So numbers, branches and tensors that Python has replaced
since the capture have no effect on it, and a tensor that was freed since then is an error.

A "cuda" device is that of `pretended_gpu`: what is computed on the CPU is not recorded there, as
with CUDA. On the CPU each operation is recorded.
"""

from functools import partial

import torch
from pretended import Pretended, values, waiting
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map


class Recording(TorchDispatchMode):
    """A Recording is a mode that runs operations, and keeps them in `operations` for a replay.

    It raises RuntimeError for what a capture on CUDA refuses: an operation whose result the CPU
    waits for, or a copy between the CPU and the GPU.
    """

    def __init__(self, device):
        super().__init__()
        self.is_gpu = torch.device(device).type == "cuda"
        # (Operation, its arguments as functions that return them, its `fresh` results)
        self.operations = []
        self.of_cpu = {}  # address -> tensor of the CPU that was made during the capture
        self.changed = []  # (tensor that an operation wrote to, copy of its values before)

    @classmethod
    def _should_skip_dynamo(cls):  # else torch would import its compiler, which takes seconds
        return False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs, schema = kwargs or {}, func._schema
        place = kwargs.get("device")
        if self.is_gpu and Pretended not in types and (place is None or place.type != "meta"):
            made = func(*args, **kwargs)
            self.of_cpu |= {address(x): x for x in tensors(made)}
            return made
        is_fetched = place is not None and place.type == "cpu" and self.is_gpu
        if name := waiting(func, args, is_fetched):
            raise RuntimeError(f"{func}: the CPU cannot wait during a capture ({name})")
        given = tree_map(self.argument, (args, kwargs))
        for argument, value in zip(schema.arguments, args, strict=False):
            is_written = argument.alias_info is not None and argument.alias_info.is_write
            if is_written:
                self.changed += [(x.detach(), x.clone()) for x in tensors(value)]
        made = func(*args, **kwargs)
        new = [x.detach() for x in fresh(schema, made)]
        self.operations.append((func, given, new))
        return made

    def argument(self, x):
        """Return a function that returns the argument `x` of an operation at each replay.

        Only the results of operations are kept alive, not what was there before the capture.
        """
        if not isinstance(x, Tensor):
            return lambda: x
        if self.is_gpu and not isinstance(x, Pretended):
            if x.dim():
                raise RuntimeError("a capture cannot copy a tensor from the CPU to the GPU")
            return partial(values, x.clone())  # a number
        if address(x) in self.of_cpu:
            raise RuntimeError("a capture cannot copy a tensor from the CPU to the GPU")
        held = values(x)
        layout = held.storage_offset(), held.size(), held.stride()
        found = partial(at, StorageWeakRef(held.untyped_storage()), held.dtype, layout)
        return found if held is x else lambda: Pretended(found())

    def replay(self):
        """Repeat all operations."""
        for func, given, new in self.operations:
            args, kwargs = tree_map(lambda get: get(), given)
            again = fresh(func._schema, func(*args, **kwargs))
            for x, value in zip(new, again, strict=True):
                x.copy_(value)

    def forget(self):
        """Make what was computed during the capture undefined: CUDA computes it at each replay."""
        for before, copy in reversed(self.changed):
            before.copy_(copy)
        for _, _, new in self.operations:
            for x in new:
                x.fill_(float("nan") if x.is_floating_point() else 0)
        self.changed, self.of_cpu = [], {}


def tensors(nested):
    """Return the tensors in nested lists and tuples."""
    return [x for x in tree_leaves(nested) if isinstance(x, Tensor)]


def fresh(schema, made):
    """Return the results `made` of an operation, except arguments and views of arguments."""
    results = [made] if len(schema.returns) == 1 else made or ()
    pairs = zip(schema.returns, results, strict=True)
    return tensors([value for result, value in pairs if result.alias_info is None])


def address(x):
    """Return a number of the memory that a tensor shares with its views."""
    return values(x).untyped_storage()._cdata


def at(memory, dtype, layout):
    """Return a tensor in `memory`, a weak reference to it (RuntimeError if it was freed)."""
    storage = torch.UntypedStorage._new_with_weak_ptr(memory.cdata)
    if storage is None:
        raise RuntimeError("a replay reads memory that was freed after the capture")
    return torch.empty(0, dtype=dtype).set_(storage, *layout)


def recorded(device, work):
    """Record `work`; return a function that replays it, and its outputs.

    As in `captured_on_cuda`, whose place this function takes, a first call is not recorded.
    """
    work()
    recording = Recording(device)
    with recording:
        outputs = work()
    recording.forget()
    return torch.no_grad()(recording.replay), outputs
