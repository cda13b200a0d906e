"""One evaluation of an objective, watched: its graph, its backward passes, and what they keep."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import Node
from torch.overrides import TorchFunctionMode

from styletransfer.commands.explain.facts import Group, NodeFacts, Pass, Retention, Study
from styletransfer.lessons import graph
from styletransfer.lessons.graph import Saved
from styletransfer.objective.whole import Objective

# The one loss that hangs on the image itself, as `Losses.terms` calls it.
PRIOR = "total_variation"


def study(objective: Objective, image: Tensor) -> Study:
    """Evaluate `objective` at `image` and report every backward pass.

    The evaluation is the real one, `Objective.evaluate`, watched from outside: forward hooks tell
    which layer made which node, and a `TorchFunctionMode` sees each call of `Tensor.backward`.

    Args:
        objective: in any loss mode.
        image: (1, 3, H, W), sRGB in [0, 1]; a copy of it becomes the leaf.
    """
    point = image.detach().clone(memory_format=torch.contiguous_format).requires_grad_()
    known = [point, *objective.network.parameters(), *objective.network.buffers()]
    lent = frozenset(graph.storages(known))
    watch = _Watch(objective, point, lent)
    with watch.owners(), _count_methods(objective) as by_driver, watch:
        objective.evaluate(point)
    retention, by_autograd = _retention(objective, point, lent)
    for term in objective.terms:
        term.module.loss = None  # type: ignore[assignment]
    return Study(
        mode=objective.mode.name,
        groups=watch.groups(),
        passes=tuple(watch.passes),
        retention=retention,
        methods=tuple(sorted(by_driver)),
        entered_by_driver=sum(by_driver.values()),
        entered_by_autograd=by_autograd,
        lent=lent,
    )


@dataclass
class _Seen:
    """One node as it stood before the first pass that reached it."""

    kept: tuple[Saved, ...]
    passes: list[int] = field(default_factory=list)


class _Watch(TorchFunctionMode):
    """Sees every `Tensor.backward` inside its `with` block, and counts the nodes it enters."""

    def __init__(self, objective: Objective, point: Tensor, lent: Collection[int]) -> None:
        super().__init__()
        self.objective, self.point, self.lent = objective, point, lent
        self.layer_of: dict[Node, str] = {}
        self.seen: dict[Node, _Seen] = {}
        self.trunk: set[Node] = set()
        self.passes: list[Pass] = []
        self.term_of_layer = {
            layer: term.name
            for layer, module in objective.network.named_children()
            for term in objective.terms
            if term.module is module
        }

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func is not torch.Tensor.backward:
            return func(*args, **kwargs)
        nodes = graph.walk(graph.root(args[0]))
        for node in nodes:
            if node not in self.seen:
                self.seen[node] = _Seen(graph.saved(node))
        # The deeper losses' nodes are alive too, though this pass does not reach them.
        alive = {**self.layer_of, **dict.fromkeys(self.seen, "")}
        before = graph.held(alive, self.lent)
        with graph.count_visits(nodes) as visits:
            func(*args, **kwargs)
        for node in visits:
            self.seen[node].passes.append(len(self.passes) + 1)
        count = Counter(self.group_of(node) for node in visits.elements())
        name, after = self.name_of(args[0]), graph.held(alive, self.lent)
        self.passes.append(Pass(name, bool(kwargs.get("retain_graph")), count, before, after))
        return None

    @contextmanager
    def owners(self) -> Iterator[None]:
        """Note which layer's forward made each node."""

        def note(layer: str, module: nn.Module, output: Tensor) -> None:
            made = [output, getattr(module, "loss", None)]
            roots = [graph.root(tensor) for tensor in made if isinstance(tensor, Tensor)]
            for node in graph.walk(*roots):
                self.layer_of.setdefault(node, "image" if graph.leaf(node) is not None else layer)
            self.trunk = set(graph.walk(roots[0]))

        handles = [
            module.register_forward_hook(lambda m, i, output, layer=layer: note(layer, m, output))
            for layer, module in self.objective.network.named_children()
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def name_of(self, loss: Tensor) -> str:
        """Return what the loss of a pass is called."""
        for term in self.objective.terms:
            if term.module.loss is loss:
                return term.name
        reached = {self.layer_of.get(node, "") for node in graph.walk(graph.root(loss))}
        return "total" if reached & set(self.term_of_layer) else PRIOR

    def group_of(self, node: Node) -> str:
        """Return the name of the group that the node is folded into."""
        layer = self.layer_of.get(node)
        if layer is None:
            # A loss on the image itself leads to no layer's node on its way to the leaf.
            reached = {self.layer_of.get(below, "image") for below in graph.walk(node)}
            return PRIOR if reached == {"image"} else "driver"
        return self.term_of_layer.get(layer) or trunk_group(layer)

    def groups(self) -> tuple[Group, ...]:
        """Fold the nodes, from the image to the driver."""
        order = graph.walk(*self.seen)
        index = {node: position for position, node in enumerate(order)}
        names = graph.leaf_names(order, {"image": self.point})
        members: dict[str, list[NodeFacts]] = {"image": [], PRIOR: []}
        for layer, _ in self.objective.network.named_children():
            members[self.term_of_layer.get(layer) or trunk_group(layer)] = []
        members["driver"] = []
        for node in order:
            name = graph.title(node) + (f" of the {names[node]}" if node in names else "")
            facts = NodeFacts(
                index=index[node],
                name=name,
                layer=self.layer_of.get(node, ""),
                follows=tuple(index[following] for following in graph.next_nodes(node)),
                kept=self.seen[node].kept,
                is_function=graph.is_python_function(node),
                passes=tuple(self.seen[node].passes),
            )
            members[self.group_of(node)].append(facts)
        counted = set(self.lent)
        on_trunk = {self.group_of(node) for node in self.trunk}
        made: list[Group] = []
        for name, nodes in members.items():
            memory = {one.storage: one.nbytes for node in nodes for one in node.kept}
            nbytes = sum(size for storage, size in memory.items() if storage not in counted)
            counted |= set(memory)
            if nodes:
                kind, at = _kind(name)
                made.append(Group(name, kind, at, name in on_trunk, tuple(nodes), nbytes))
        return tuple(made)


def trunk_group(layer: str) -> str:
    """Return "block 1" for conv1_2, relu1_2 and pool1; other layers stand for themselves."""
    number = re.search(r"\d+", layer)
    return f"block {number.group()}" if number else layer


def _kind(name: str) -> tuple[str, str]:
    """Return a group's kind, and the trunk group at which it is drawn."""
    if name == PRIOR:
        return "loss", "image"
    if "/" in name:
        return "loss", trunk_group(name.partition("/")[2])
    return name if name in ("image", "driver") else "trunk", name


def _retention(objective: Objective, point: Tensor, lent: Collection[int]) -> tuple[Retention, int]:
    """Measure what retain_graph=True keeps; also count the fake methods that autograd enters."""

    def forward() -> list[Tensor]:
        objective.network(point)
        return [term.module.loss for term in objective.terms]  # type: ignore[misc]

    losses = forward()
    nodes = graph.walk(*(graph.root(loss) for loss in losses))
    before = graph.held(nodes, lent)
    with _count_methods(objective) as by_autograd:
        torch.autograd.backward(losses, retain_graph=True)
        retained = graph.held(nodes, lent)
        torch.autograd.backward(losses)
    freed = graph.held(nodes, lent)
    second_pass = None
    try:
        for loss in forward():
            loss.backward()  # type: ignore[no-untyped-call]
    except RuntimeError as error:
        second_pass = str(error).partition(". ")[0]
    return Retention(before, retained, freed, second_pass), sum(by_autograd.values())


@contextmanager
def _count_methods(objective: Objective) -> Iterator[Counter[str]]:
    """Count the calls of the loss modules' own methods called `backward`, by class."""
    calls: Counter[str] = Counter()
    modules = [term.module for term in objective.terms if hasattr(term.module, "backward")]

    def counting(name: str, method: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def backward(*args: Any, **kwargs: Any) -> Tensor:
            calls[name] += 1
            return method(*args, **kwargs)

        return backward

    for module in modules:
        name = f"{type(module).__name__}.backward"
        calls[name] += 0
        # On the instance, where it hides the class's method for as long as it is there.
        module.backward = counting(name, module.backward)  # type: ignore[arg-type,assignment]
    try:
        yield calls
    finally:
        for module in modules:
            del module.backward
