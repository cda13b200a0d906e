"""A pretended GPU: tensors that say they are on "cuda", while their values stay on the CPU.

Within `pretended_gpu`, a machine without a GPU notices what CUDA refuses: an operation that mixes
tensors of both devices, an array that shares memory with a tensor of the GPU, a CPU generator that
fills a tensor of the GPU. Beside tensors of the GPU, CUDA allows CPU tensors only where a number
could stand (0-d, elementwise), as indices, and in copies. Refused are also operations by which two
equal runs get other bits.

`Pretended` is a wrapper subclass. Below autograd, each operation reaches its `__torch_dispatch__`,
which computes on the wrapped CPU tensors. C++ takes the wrappers for tensors of device "meta".
"""

from collections import Counter
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import ClassVar
from unittest.mock import Mock, patch

import torch
from torch import Tensor
from torch.autograd import Function
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

GPU, CPU = torch.device("cuda", 0), torch.device("cpu")
MEMORY = 2**34  # bytes of the GPU; all of them are free
# Operations that may read CPU tensors beside tensors of the GPU: copies, and indices.
MIXING = {"copy_", "index", "index_put", "index_put_", "_index_put_impl_"}
# Operations whose result the CPU waits for: a number, or a tensor whose size the values decide.
WAITING = {"_local_scalar_dense", "nonzero", "masked_select", "equal", "_unique2", "to the CPU"}
# Operations that add floating-point numbers on CUDA in an order left to chance (torch's
# documentation of `use_deterministic_algorithms`), without the _ at the end of their names.
UNORDERED = {
    *("replication_pad2d_backward", "reflection_pad2d_backward", "grid_sampler_2d_backward"),
    *("upsample_bilinear2d_backward", "upsample_bicubic2d_backward", "cumsum", "histc"),
    *("_upsample_bilinear2d_aa_backward", "_upsample_bicubic2d_aa_backward", "index_add"),
    *("_adaptive_avg_pool2d_backward", "scatter_add", "put", "index_reduce", "scatter_reduce"),
}


class Pretended(Tensor):
    """A Pretended is a tensor of the pretended GPU; `held` (a CPU tensor) has its values."""

    held: Tensor
    # Operation -> how often the CPU waited for its result.
    waits: ClassVar[Counter[str]] = Counter()
    refused: ClassVar = UNORDERED

    @staticmethod
    def __new__(cls, held):
        layout = {"strides": held.stride(), "storage_offset": held.storage_offset()}
        form = {"dtype": held.dtype, "device": "meta", **layout}
        made = Tensor._make_wrapper_subclass(cls, held.size(), **form)
        made.held = held
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl
    device = property(lambda self: GPU)
    is_cuda = property(lambda self: True)
    is_cpu = is_meta = property(lambda self: False)

    def __repr__(self):
        return f"Pretended({self.held!r})"

    def __tensor_flatten__(self):  # nn.Module.to therefore swaps parameters as a whole
        return ["held"], None

    @staticmethod
    def __tensor_unflatten__(inner, *_):
        return Pretended(inner["held"])

    def __deepcopy__(self, memo):
        made = Pretended(self.held.clone()).requires_grad_(self.requires_grad)
        made._is_param = getattr(self, "_is_param", False)
        return made

    def __reduce_ex__(self, protocol):  # a file holds the values; `load` moves them back
        return self.held.__reduce_ex__(protocol)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        check(func, args, kwargs)
        is_fetched = torch.device(kwargs.get("device") or GPU).type == "cpu"
        count(func, args, is_fetched)
        if kwargs.get("device") is not None:
            kwargs["device"] = CPU
        own = {id(x.held): x for x in tree_leaves((args, kwargs)) if isinstance(x, Pretended)}
        made = func(*tree_map(values, args), **tree_map(values, kwargs))

        def placed(x):
            if not isinstance(x, Tensor):
                return x
            if is_fetched:
                return x.clone() if id(x) in own else x
            return own[id(x)] if id(x) in own else Pretended(x)  # in place, it is its argument

        return tree_map(placed, made)


def is_apart(x):
    """Tell whether x is a tensor of the CPU."""
    return isinstance(x, Tensor) and not isinstance(x, Pretended)


def values(x):
    """Return the CPU tensor of a Pretended; anything else unchanged."""
    return x.held if isinstance(x, Pretended) else x


def check(func, args, kwargs):
    """Raise RuntimeError if CUDA would refuse an operation, or it is in `Pretended.refused`."""
    name, target = func.overloadpacket.__name__, args[0] if args else None
    apart = list(filter(is_apart, tree_leaves((args, kwargs))))
    if torch.Tag.pointwise in func.tags:
        apart = [x for x in apart if x.dim() or (x is target and name.endswith("_"))]
    if name in MIXING:
        apart = [target] if is_apart(target) and name != "copy_" else []
    if apart:
        raise RuntimeError(f"{func}: tensors on two devices, {GPU} and cpu")
    if name.removesuffix("_") in Pretended.refused and target.is_floating_point():
        raise RuntimeError(f"{func}: CUDA computes other bits each time")
    generator = kwargs.get("generator")
    if generator is not None and generator.device.type == "cpu":
        raise RuntimeError(f"{func}: expected a 'cuda' device type for generator but found 'cpu'")


def count(func, args, is_fetched):
    """Count an operation in `Pretended.waits` if the CPU waits for its result."""
    if name := waiting(func, args, is_fetched):
        Pretended.waits[name] += 1


def waiting(func, args, is_fetched):
    """Return the name in WAITING of an operation whose result the CPU waits for; else None."""
    name = func.overloadpacket.__name__
    masks = [x for x in tree_leaves(args[1:2]) if getattr(x, "dtype", None) == torch.bool]
    if is_fetched or (name == "copy_" and is_apart(args[0]) and isinstance(args[1], Pretended)):
        name = "to the CPU"
    elif name.startswith("index") and masks:
        name = "nonzero"
    return name if name in WAITING else None


class Move(Function):
    """This Function copies a tensor to the pretended GPU if `there`, else from it to the CPU."""

    @staticmethod
    def forward(ctx, x, there):
        ctx.there = there
        return Pretended(x.clone()) if there else x.to(device=CPU)

    @staticmethod
    def backward(ctx, grad):
        return Move.apply(grad, not ctx.there), None


class Moving(TorchFunctionMode):
    """This mode makes tensors where device="cuda" asks, and moves them there and back."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if func in (Tensor.to, Tensor.cuda, Tensor.cpu):
            place = {Tensor.cuda: [GPU], Tensor.cpu: [CPU]}.get(func, [])
            return to(*args, *place, **kwargs)
        if func is Tensor.tolist:
            return to(args[0], CPU).tolist()
        if func is Tensor.new_tensor and isinstance(args[0], Pretended):
            return to(args[0].held.new_tensor(*args[1:], **kwargs), GPU)
        if func is Tensor.data.__set__ and isinstance(args[1], Pretended):
            args[0].held = args[1].held
        device = kwargs.get("device")
        if device is not None and torch.device(device).type == "cuda":
            if func in (torch.tensor, torch.as_tensor, torch.asarray):
                return to(func(*args, **kwargs | {"device": CPU}), GPU)
            kwargs["device"] = torch.device("meta")
        return func(*args, **kwargs)


class Making(TorchDispatchMode):
    """This mode makes the tensors that C++ wants on the device "meta": those of the GPU."""

    @classmethod
    def _should_skip_dynamo(cls):  # else torch would import its compiler, which takes seconds
        return False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        device = (kwargs or {}).get("device")
        if Pretended in types or (device is not None and device.type == "meta"):
            # Called from here, and not by C++, it does not import torch.distributed.tensor (slow).
            return Pretended.__torch_dispatch__(func, types, args, kwargs)
        return func(*args, **(kwargs or {}))


def to(x, *args, copy=False, **kwargs):
    """Do what Tensor.to does."""
    device, dtype, _, layout = torch._C._nn._parse_to(*args, **kwargs)
    form = {"dtype": dtype, "memory_format": layout or torch.preserve_format}
    there = isinstance(x, Pretended)
    if device is not None and (device.type != "cpu") != there:
        return Move.apply(x, not there).to(**form)
    return x.to(copy=copy, **form)


def load(real, *args, map_location="cpu", **kwargs):
    """Do what torch.load does."""
    made, place = real(*args, map_location="cpu", **kwargs), torch.device(map_location)
    return tree_map(lambda x: to(x, place) if isinstance(x, Tensor) else x, made)


@contextmanager
def pretended_gpu(*, repeats=True):
    """Let torch find one GPU, without bfloat16 units, in this context; yield `Pretended.waits`.

    With `repeats`, operations by which two equal runs get other bits are refused.
    """
    answers = {
        "torch.accelerator.current_accelerator": lambda *_, **__: torch.device("cuda"),
        "torch.accelerator.device_count": lambda: 1,
        "torch.accelerator.get_memory_info": lambda *_: (MEMORY, MEMORY),
        "torch.accelerator.memory_reserved": lambda *_: 0,
        "torch.accelerator.memory_allocated": lambda *_: 0,
        "torch.accelerator.current_stream": lambda *_: Mock(is_capturing=lambda: False),
        "torch.cuda.get_device_capability": lambda *_: (7, 5),
        "torch.cuda.get_device_name": lambda *_: "Pretended",
        "torch.load": partial(load, torch.load),
    }
    Pretended.waits.clear()
    with ExitStack() as stack:
        for name, answer in answers.items():
            stack.enter_context(patch(name, answer))
        stack.enter_context(patch.object(Pretended, "refused", UNORDERED if repeats else {}))
        stack.enter_context(Moving())
        stack.enter_context(Making())
        yield Pretended.waits
