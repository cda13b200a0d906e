"""Reads an autograd graph: which node leads to which, what each one keeps, and where it all ends.

Every floating point tensor computed from one that requires grad has a `grad_fn`, the node that
will differentiate the operation that made it. A node's `next_functions` lead to the nodes of that
operation's inputs, and each path ends at an `AccumulateGrad`, whose `.variable` is the very leaf
tensor. `loss.backward()` walks these nodes and nothing else.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.autograd.function import BackwardCFunction
from torch.autograd.graph import Node, get_gradient_edge

from styletransfer.errors import UserError


@dataclass(frozen=True)
class SavedTensor:
    """One tensor that a node keeps for its backward.

    Attributes:
        name: as the node calls it: "self", "result", "weight", or a position for a Function.
        shape: of the tensor; it may be a view.
        dtype: such as "float32".
        storage: address of its memory; equal for views of one tensor.
        nbytes: bytes of that memory, all of which the node keeps alive.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    storage: int
    nbytes: int


def root(tensor: Tensor, name: str = "the tensor") -> Node:
    """Return the node where a backward pass from `tensor` begins; a leaf's is its AccumulateGrad.

    Raises:
        UserError: the tensor has no graph, because it holds integers or nothing was recorded.
    """
    if not tensor.requires_grad:
        if not _is_differentiable(tensor):
            raise UserError(f"{name} has no graph: {_integers(tensor)}")
        raise UserError(
            f"{name} has no graph: nothing it was computed from requires grad, or it was made "
            "under torch.no_grad() or by detach()"
        )
    return get_gradient_edge(tensor).node


def next_nodes(node: Node) -> list[Node]:
    """Return the nodes of the inputs of the operation, without those that need no gradient."""
    return [following for following, _ in node.next_functions if following is not None]


def walk(*roots: Node) -> list[Node]:
    """Return every node that a backward pass from `roots` reaches, each before those it leads to.

    Nodes are hashed by identity: torch hands out the same Python object for a node as long as one
    is alive, and the list keeps them alive.
    """
    finished: dict[Node, None] = {}
    stack = [(node, False) for node in roots]
    while stack:
        node, expanded = stack.pop()
        if expanded:
            finished[node] = None
        elif node not in finished:
            stack.append((node, True))
            stack += [(following, False) for following in next_nodes(node)]
    # A node finishes after all that it leads to.
    return list(finished)[::-1]


def leaf(node: Node) -> Tensor | None:
    """Return the leaf tensor whose `.grad` the node fills, or None if it is no AccumulateGrad."""
    variable = getattr(node, "variable", None)
    return variable if isinstance(variable, Tensor) else None


def leaf_names(nodes: Iterable[Node], known: Mapping[str, Tensor]) -> dict[Node, str]:
    """Return AccumulateGrad -> the name in `known` of its leaf, or the leaf's shape."""
    names: dict[Node, str] = {}
    for node in nodes:
        variable = leaf(node)
        if variable is not None:
            found = [name for name, tensor in known.items() if tensor is variable]
            names[node] = found[0] if found else f"a leaf {tuple(variable.shape)}"
    return names


def title(node: Node) -> str:
    """Return the node's class without its C++ namespace, such as "ReluBackward0"."""
    return node.name().rpartition("::")[2]


def is_python_function(node: Node) -> bool:
    """Tell whether the node runs the `backward` of a `torch.autograd.Function` subclass."""
    return isinstance(node, BackwardCFunction)


def saved(node: Node) -> tuple[SavedTensor, ...]:
    """Return the tensors that `node` keeps for its backward; none once they have been freed.

    They are read from the node's own documented attributes: `_saved_*` of a built-in operation
    ("Saved tensors" in torch's autograd notes), `saved_tensors` of a Function. Unlike the hooks of
    `torch.autograd.graph.saved_tensors_hooks`, these say which node is the owner; a test checks
    that both find the same memory. A tensor that a Function keeps as a plain attribute of its
    `ctx`, against the rules, is not seen.

    Raises:
        UserError: a kept tensor was changed in place since, so its node can no longer run.
    """
    kept: list[SavedTensor] = []
    for name in _attributes(node):
        found = _read(node, name)
        tensors = found if isinstance(found, tuple | list) else (found,)
        for position, tensor in enumerate(tensors):
            if isinstance(tensor, Tensor):
                label = name.removeprefix("_saved_") if tensor is found else f"[{position}]"
                memory = tensor.untyped_storage()
                shape, dtype = tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")
                kept.append(SavedTensor(label, shape, dtype, memory.data_ptr(), memory.nbytes()))
    return tuple(kept)


def is_freed(node: Node) -> bool:
    """Tell whether an earlier backward has freed what the node had kept."""
    return any(_read(node, name) is _FREED for name in _attributes(node))


def check_alive(nodes: Iterable[Node]) -> None:
    """Check that a backward pass can still run through `nodes`.

    Raises:
        UserError: an earlier backward has freed what they had kept.
    """
    freed = [node for node in nodes if is_freed(node)]
    if freed:
        raise UserError(
            f"this graph is already freed: an earlier backward emptied {title(freed[0])} and "
            f"{len(freed) - 1} more nodes; run forward again, or pass retain_graph=True before"
        )


def storages(tensors: Iterable[Tensor]) -> set[int]:
    """Return the addresses of the tensors' memory, as `SavedTensor.storage` has them."""
    return {tensor.untyped_storage().data_ptr() for tensor in tensors}


def held(nodes: Iterable[Node], apart_from: Collection[int] = ()) -> int:
    """Return the bytes that `nodes` keep alive, memory that several of them share counted once.

    Args:
        nodes: of one graph or of several.
        apart_from: storages not to count, such as the parameters', which live anyway.
    """
    memory = {kept.storage: kept.nbytes for node in nodes for kept in saved(node)}
    return sum(nbytes for storage, nbytes in memory.items() if storage not in apart_from)


@contextmanager
def count_visits(nodes: Iterable[Node]) -> Iterator[Counter[Node]]:
    """Count how often autograd really enters each of `nodes` inside the `with` block."""
    visits: Counter[Node] = Counter()

    def watch(node: Node) -> torch.utils.hooks.RemovableHandle:
        return node.register_prehook(lambda grads: visits.update([node]))

    handles = [watch(node) for node in nodes]
    try:
        yield visits
    finally:
        for handle in handles:
            handle.remove()


def explain_grad(tensor: Tensor, name: str) -> str:
    """Return one sentence on what `tensor.grad` is, and why."""
    if not _is_differentiable(tensor):
        return f"{name} can have no gradient: {_integers(tensor)}."
    if not tensor.requires_grad:
        return f"{name} does not require grad, so nothing is recorded and {name}.grad stays None."
    if not tensor.is_leaf:
        maker = title(root(tensor))
        # Asking a non-leaf for .grad warns, so ask for retains_grad.
        if tensor.retains_grad:
            return f"{name} is no leaf ({maker} made it), but {name}.retain_grad() keeps its .grad."
        return (
            f"{name} is no leaf ({maker} made it): its gradient is passed on and dropped, so "
            f"{name}.grad is None; call {name}.retain_grad() before backward to keep it."
        )
    if tensor.grad is None:
        return f"{name} is a leaf that no backward has reached yet, so {name}.grad is None."
    return f"{name} is a leaf: its AccumulateGrad adds every arriving gradient to {name}.grad."


_FREED = object()


def _attributes(node: Node) -> list[str]:
    if is_python_function(node):
        return ["saved_tensors"]
    return [name for name in dir(node) if name.startswith("_saved_")]


def _read(node: Node, name: str) -> object:
    try:
        return getattr(node, name)
    except RuntimeError as error:
        if "modified by an inplace operation" in str(error):
            raise UserError(
                f"{title(node)} kept a tensor for its backward that was changed in place since; "
                "replace the in-place operation, or clone the tensor before it"
            ) from error
        return _FREED


def _is_differentiable(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _integers(tensor: Tensor) -> str:
    kind = str(tensor.dtype).removeprefix("torch.")
    return f"it holds {kind} values, and only floating point or complex ones have derivatives"
