"""Watches an evaluation from outside: which layer made which node, and what each pass entered."""

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

from styletransfer.commands.explain.facts import Pass
from styletransfer.lessons import graph
from styletransfer.lessons.graph import SavedTensor
from styletransfer.objective.whole import Objective

# The one loss that hangs on the image itself, as `Losses.terms` calls it.
PRIOR = "total_variation"


@dataclass
class Seen:
    """One node as it stood before the first pass that reached it."""

    kept: tuple[SavedTensor, ...]
    passes: list[int] = field(default_factory=list)


class Watch(TorchFunctionMode):
    """Sees every `Tensor.backward` inside its `with` block, and counts the nodes it enters."""

    def __init__(self, objective: Objective, point: Tensor, lent: Collection[int]) -> None:
        super().__init__()
        self.objective, self.point, self.lent = objective, point, lent
        self.layer_of: dict[Node, str] = {}
        self.seen: dict[Node, Seen] = {}
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
                self.seen[node] = Seen(graph.saved(node))
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


def trunk_group(layer: str) -> str:
    """Return "block 1" for conv1_2, relu1_2 and pool1; other layers stand for themselves."""
    number = re.search(r"\d+", layer)
    return f"block {number.group()}" if number else layer
