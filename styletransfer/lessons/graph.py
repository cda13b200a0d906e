"""Reads an autograd graph: the edges between its nodes, the tensors they save, and its leaves.

Every floating point tensor computed from one that requires grad has a `grad_fn`, the node that
will differentiate the operation that made it. A node's `next_functions` lead to the nodes of that
operation's inputs, and each path ends at an `AccumulateGrad`, whose `.variable` is the very leaf
tensor. `loss.backward()` walks these nodes and nothing else.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from torch import Tensor
from torch.autograd.function import BackwardCFunction
from torch.autograd.graph import Node, get_gradient_edge


@dataclass(frozen=True)
class SavedTensor:
    """One tensor that a node saves for its backward."""

    name: str  # the node's name for it, such as "self" or "weight"; "[0]" and so on in a Function
    shape: tuple[int, ...]  # shape of the tensor, which may be a view
    storage: int  # address of the tensor's storage; equal for views of one tensor
    nbytes: int  # size of the whole storage in bytes, which the node keeps alive


def root(tensor: Tensor) -> Node:
    """Return the node where a backward pass from `tensor` begins; a leaf's is its AccumulateGrad.

    (RuntimeError: the tensor has no graph, as nothing that it was computed from requires grad.)
    """
    return get_gradient_edge(tensor).node


def next_nodes(node: Node) -> list[Node]:
    """Return the nodes of the operation's inputs, except inputs that need no gradient."""
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
    # A node is finished after all nodes that it leads to, so the reverse is the order of backward.
    return list(finished)[::-1]


def leaf(node: Node) -> Tensor | None:
    """Return the leaf tensor whose `.grad` the node fills, or None if it is no AccumulateGrad."""
    variable = getattr(node, "variable", None)
    return variable if isinstance(variable, Tensor) else None


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
    `ctx`, against the rules, is not seen. (RuntimeError: a kept tensor was changed in place since,
    so its node can no longer run.)
    """
    names = [name for name in dir(node) if name.startswith("_saved_")]
    kept: list[SavedTensor] = []
    for name in ["saved_tensors"] if is_python_function(node) else names:
        try:
            value = getattr(node, name)
        except RuntimeError as error:
            if "already been freed" in str(error):
                continue
            raise
        for position, tensor in enumerate(value if isinstance(value, tuple | list) else [value]):
            if isinstance(tensor, Tensor):
                label = name.removeprefix("_saved_") if tensor is value else f"[{position}]"
                memory = tensor.untyped_storage()
                shape = tuple(tensor.shape)
                kept.append(SavedTensor(label, shape, memory.data_ptr(), memory.nbytes()))
    return tuple(kept)


def held(nodes: Iterable[Node], apart_from: Collection[int] = ()) -> int:
    """Return the bytes that `nodes` keep alive, memory that several of them share counted once.

    Storages `apart_from` do not count, such as the parameters', which live anyway.
    """
    memory = {tensor.storage: tensor.nbytes for node in nodes for tensor in saved(node)}
    return sum(nbytes for storage, nbytes in memory.items() if storage not in apart_from)


@contextmanager
def count_visits(nodes: Iterable[Node]) -> Iterator[Counter[Node]]:
    """Count how often autograd really enters each of `nodes` inside the `with` block."""
    visits: Counter[Node] = Counter()
    handles = [
        node.register_prehook(lambda grads, node=node: visits.update([node])) for node in nodes
    ]
    try:
        yield visits
    finally:
        for handle in handles:
            handle.remove()
