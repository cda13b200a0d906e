"""The smallest graph with an intermediate in it: e = (a + b) * d."""

from dataclasses import dataclass

import torch
from torch import Tensor

from styletransfer.commands.explain.facts import NodeFacts
from styletransfer.lessons import graph

CODE = """\
a = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(3.0, requires_grad=True)
d = torch.tensor(4.0, requires_grad=True)
c = a + b
e = c * d
e.backward()"""


@dataclass(frozen=True)
class Variable:
    """One tensor of the example, after `e.backward()`.

    Attributes:
        name: of the Python variable.
        value: the number that it holds.
        grad: the number in its `.grad`, or None.
        why: one sentence on that.
    """

    name: str
    value: float
    grad: float | None
    why: str


@dataclass(frozen=True)
class SmallExample:
    """The example's graph and variables.

    Attributes:
        nodes: from e's MulBackward0 to the three AccumulateGrad.
        visits: nodes that `e.backward()` entered, counted.
        variables: a, b, d, c and e.
    """

    nodes: tuple[NodeFacts, ...]
    visits: int
    variables: tuple[Variable, ...]


def small_example() -> SmallExample:
    """Run `e = (a + b) * d` with a=2, b=3, d=4, and its backward: gradients 4, 4, 5 and None."""
    a, b, d = (torch.tensor(value, requires_grad=True) for value in (2.0, 3.0, 4.0))
    c = a + b
    e = c * d
    order = graph.walk(graph.root(e))
    names = graph.leaf_names(order, {"a": a, "b": b, "d": d})
    made = {graph.root(c): "c", graph.root(e): "e"}
    nodes = tuple(
        NodeFacts(
            index=order.index(node),
            name=graph.title(node) + (f" of {names[node]}" if node in names else ""),
            layer=f"{made[node]} =" if node in made else "",
            follows=tuple(order.index(following) for following in graph.next_nodes(node)),
            kept=graph.saved(node),
            is_function=False,
            passes=(1,),
        )
        for node in order
    )
    with graph.count_visits(order) as visits:
        e.backward()  # type: ignore[no-untyped-call]
    named = {"a": a, "b": b, "d": d, "c": c, "e": e}
    variables = [_after(name, tensor) for name, tensor in named.items()]
    return SmallExample(nodes, visits.total(), tuple(variables))


def _after(name: str, tensor: Tensor) -> Variable:
    # Asking a non-leaf for a .grad that it was never told to keep warns.
    kept = tensor.grad if tensor.is_leaf or tensor.retains_grad else None
    grad = None if kept is None else kept.item()
    return Variable(name, tensor.item(), grad, graph.explain_grad(tensor, name))
