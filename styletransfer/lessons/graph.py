"""Reads an autograd graph: the edges between its nodes, the tensors they save, and its leaves.

Every floating point tensor computed from one that requires grad has a `grad_fn`, the node that
will differentiate the operation that made it. A node's `next_functions` lead to the nodes of that
operation's inputs, and each path ends at an `AccumulateGrad`, whose `.variable` is the very leaf
tensor. `loss.backward()` walks these nodes and nothing else.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

from torch import Tensor
from torch.autograd.function import BackwardCFunction
from torch.autograd.graph import Node, get_gradient_edge


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


def saved(node: Node) -> dict[int, int]:
    """Return the memory that `node` keeps for its backward; none once it has been freed.

    The result is address -> bytes of each storage; a tensor that is a view keeps the whole storage.

    The tensors are the node's own documented attributes: `_saved_*` of a built-in operation
    ("Saved tensors" in torch's autograd notes), `saved_tensors` of a Function. Unlike the hooks of
    `torch.autograd.graph.saved_tensors_hooks`, these say which node is the owner; a test checks
    that both find the same memory. A tensor that a Function keeps as a plain attribute of its
    `ctx`, against the rules, is not seen. (RuntimeError: a kept tensor was changed in place since,
    so its node can no longer run.)
    """
    names = [name for name in dir(node) if name.startswith("_saved_")]
    kept: dict[int, int] = {}
    for name in ["saved_tensors"] if is_python_function(node) else names:
        try:
            value = getattr(node, name)
        except RuntimeError as error:
            if "already been freed" in str(error):
                continue
            raise
        for tensor in value if isinstance(value, tuple | list) else [value]:
            if isinstance(tensor, Tensor):
                memory = tensor.untyped_storage()
                kept[memory.data_ptr()] = memory.nbytes()
    return kept


def held(nodes: Iterable[Node], apart_from: Collection[int] = ()) -> int:
    """Return the bytes that `nodes` keep alive, memory that several of them share counted once.

    Storages `apart_from` do not count, such as the parameters', which live anyway.
    """
    memory = {address: nbytes for node in nodes for address, nbytes in saved(node).items()}
    return sum(nbytes for address, nbytes in memory.items() if address not in apart_from)


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
