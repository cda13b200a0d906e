"""Lists the nodes of an autograd graph, and counts how often a backward pass runs each node."""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from torch import Tensor
from torch.autograd.graph import Node, get_gradient_edge


def root(tensor: Tensor) -> Node:
    """Return the node where a backward pass from `tensor` begins; RuntimeError if there is none."""
    return get_gradient_edge(tensor).node


def walk(*roots: Node) -> list[Node]:
    """Return every node that a backward pass from `roots` reaches, in topological order.

    Each node stands before the nodes that it leads to. As long as the list exists, torch returns
    the same Python objects for these nodes, so they can be the keys of a dictionary.
    """
    finished: dict[Node, None] = {}
    stack = [(node, False) for node in roots]
    while stack:
        node, expanded = stack.pop()
        if expanded:
            finished[node] = None
        elif node not in finished:
            stack.append((node, True))
            # An input that needs no gradient has no node: its pair is (None, 0).
            stack += [(following, False) for following, _ in node.next_functions if following]
    # A node is finished after all nodes that it leads to; the reversed list has it before them.
    return list(finished)[::-1]


@contextmanager
def count_visits(nodes: Iterable[Node]) -> Iterator[Counter[Node]]:
    """Yield a Counter of how often autograd runs each of `nodes` inside the `with` block."""
    visits: Counter[Node] = Counter()
    with ExitStack() as hooks:
        for node in nodes:
            hook = node.register_prehook(lambda grads, node=node: visits.update([node]))
            hooks.enter_context(hook)
        yield visits
