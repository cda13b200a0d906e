"""Studies of whole evaluations: the real one under a loss mode, and one small enough to read."""

import torch
from torch import Tensor

from styletransfer.commands.explain.facts import NodeFacts, Study
from styletransfer.commands.explain.watch import Watch, describe
from styletransfer.lessons import graph
from styletransfer.objective.whole import Objective
from styletransfer.system.measure import counted

SMALL = "e = (a + b) * d"  # the smallest graph with an intermediate in it
CODE = """\
a = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(3.0, requires_grad=True)
d = torch.tensor(4.0, requires_grad=True)
c = a + b
e = c * d
e.backward()"""


def study(mode: str, objective: Objective, image: Tensor) -> Study:
    """Watch `objective`, in a loss mode, being evaluated at a copy of `image`.

    The image is (1, 3, H, W), sRGB in [0, 1]; the evaluation is the real `Objective.evaluate`.
    """
    point = image.detach().clone(memory_format=torch.contiguous_format).requires_grad_()
    known = [point, *objective.network.parameters(), *objective.network.buffers()]
    lent = frozenset(graph.storages(known))
    modules = {type(term.module) for term in objective.terms}
    methods = [(module, "backward") for module in modules if hasattr(module, "backward")]
    watch = Watch(objective, point, lent)
    with watch.owners(), counted(*methods) as by_driver, watch:
        objective.evaluate(point)
    losses = _forward(objective, point)
    nodes = graph.walk(*map(graph.root, losses))
    retention = {"after forward": graph.held(nodes, lent)}
    with counted(*methods) as by_autograd:
        torch.autograd.backward(losses, retain_graph=True)
    retention["after one backward with retain_graph=True"] = graph.held(nodes, lent)
    torch.autograd.backward(losses)
    retention["after one backward without it"] = graph.held(nodes, lent)
    refusal = _refusal(_forward(objective, point))
    for term in objective.terms:
        term.module.loss = None  # type: ignore[assignment]
    return Study(
        mode=mode,
        groups=watch.groups(),
        passes=tuple(watch.passes),
        methods=tuple(sorted(f"{module.__name__}.backward" for module, _ in methods)),
        entered_by_driver=by_driver.count,
        entered_by_autograd=by_autograd.count,
        retention=retention,
        refusal=refusal,
    )


def _forward(objective: Objective, point: Tensor) -> list[Tensor]:
    objective.network(point)
    return [term.module.loss for term in objective.terms]  # type: ignore[misc]


def _refusal(losses: list[Tensor]) -> str:
    """Say what comes of one backward per loss without retain_graph=True."""
    try:
        for loss in losses:
            loss.backward()  # type: ignore[no-untyped-call]
    except RuntimeError as error:
        words = str(error).partition(". ")[0]
        return f"torch refuses: {words[0].lower()}{words[1:]}"
    return "works: nothing that one pass frees is needed by another"


def small_example() -> tuple[list[NodeFacts], list[tuple[str, float, float | None, str]]]:
    """Run `CODE`: its nodes; and each variable's name, value, `.grad`, and why that is so."""
    a, b, d = (torch.tensor(value, requires_grad=True) for value in (2.0, 3.0, 4.0))
    c = a + b
    e = c * d
    order = graph.walk(graph.root(e))
    kept = {node: graph.saved(node) for node in order}
    made = {graph.root(c): "c =", graph.root(e): "e ="}
    with graph.count_visits(order) as visits:
        e.backward()  # type: ignore[no-untyped-call]
    passes = {node: [1] * visits[node] for node in order}
    leaves = {"a": a, "b": b, "d": d}
    facts = describe(dict.fromkeys(order, SMALL), made, kept, passes, leaves)
    variables: list[tuple[str, float, float | None, str]] = []
    for name, tensor in leaves.items():
        why = f"{name} is a leaf: its AccumulateGrad adds every arriving gradient to {name}.grad."
        assert tensor.grad is not None
        variables.append((name, tensor.item(), tensor.grad.item(), why))
    for name, tensor in {"c": c, "e": e}.items():
        why = (
            f"{name} is no leaf ({graph.title(graph.root(tensor))} made it): its gradient is "
            f"passed on and dropped, so {name}.grad is None; call {name}.retain_grad() before "
            "backward to keep it."
        )
        variables.append((name, tensor.item(), None, why))
    return list(facts.values()), variables
