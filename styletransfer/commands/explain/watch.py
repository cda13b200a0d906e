"""Watches an evaluation from outside: which layer made which node, and what each pass entered."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import Node
from torch.overrides import TorchFunctionMode

from styletransfer.commands.explain.facts import Group, NodeFacts, Pass, format_bytes
from styletransfer.lessons import graph
from styletransfer.lessons.graph import SavedTensor
from styletransfer.objective.whole import Objective

PRIOR = "total_variation"  # the one loss that hangs on the image itself, as in `Losses.terms`


class Watch(TorchFunctionMode):
    """Sees every `Tensor.backward` inside its `with` block, and counts the nodes it enters."""

    def __init__(self, objective: Objective, point: Tensor, lent: Collection[int]) -> None:
        super().__init__()
        self.objective, self.point, self.lent = objective, point, lent
        self.layer_of: dict[Node, str] = {}  # whose forward made it
        # What each node kept before the first pass that reached it.
        self.kept: dict[Node, tuple[SavedTensor, ...]] = {}
        self.entered: defaultdict[Node, list[int]] = defaultdict(list)  # passes, from 1
        self.trunk: set[Node] = set()  # between the image and the deepest layer's output
        self.passes: list[Pass] = []  # in the order of the calls
        self.term_of_layer = {
            layer: term.name
            for layer, module in objective.network.named_children()
            for term in objective.terms
            if term.module is module
        }

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is not torch.Tensor.backward:
            return func(*args, **kwargs)
        nodes = graph.walk(graph.root(args[0]))
        for node in nodes:
            if node not in self.kept:
                self.kept[node] = graph.saved(node)
        # The deeper losses' nodes are alive too, though this pass does not reach them.
        alive = {*self.layer_of, *self.kept}
        before = graph.held(alive, self.lent)
        with graph.count_visits(nodes) as visits:
            func(*args, **kwargs)  # type: ignore[no-untyped-call]
        for node in visits.elements():
            self.entered[node].append(len(self.passes) + 1)
        after = graph.held(alive, self.lent)
        retained = bool(kwargs.get("retain_graph"))
        self.passes.append(Pass(self._name_of(args[0]), retained, before, after))
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

    def groups(self) -> tuple[Group, ...]:
        """Fold the nodes into groups, from the image to the driver, leaving out empty ones."""
        order = graph.walk(*self.kept)
        home = {node: self._group_of(node) for node in order}
        leaves = {"the image": self.point}
        facts = describe(home, self.layer_of, self.kept, self.entered, leaves, self.lent)
        layers = [name for name, _ in self.objective.network.named_children()]
        named = [self.term_of_layer.get(layer) or trunk_group(layer) for layer in layers]
        members: dict[str, list[Node]] = {name: [] for name in ("image", PRIOR, *named, "driver")}
        for node in order:
            members[home[node]].append(node)
        return tuple(
            Group(
                name, *_kind(name), bool(self.trunk & {*nodes}), tuple(facts[one] for one in nodes)
            )
            for name, nodes in members.items()
            if nodes
        )

    def _name_of(self, loss: Tensor) -> str:
        for term in self.objective.terms:
            if term.module.loss is loss:
                return term.name
        reached = {self.layer_of.get(node, "") for node in graph.walk(graph.root(loss))}
        return "total" if reached & set(self.term_of_layer) else PRIOR

    def _group_of(self, node: Node) -> str:
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


def _kind(group: str) -> tuple[str, str]:
    """Return a group's kind, and the trunk group at which it is drawn."""
    if group == PRIOR:
        return "loss", "image"
    if "/" in group:
        return "loss", trunk_group(group.partition("/")[2])
    return group if group in ("image", "driver") else "trunk", group


def describe(
    groups: Mapping[Node, str],
    layers: Mapping[Node, str],
    kept: Mapping[Node, Sequence[SavedTensor]],
    passes: Mapping[Node, Sequence[int]],
    leaves: Mapping[str, Tensor],
    lent: Collection[int] = (),
) -> dict[Node, NodeFacts]:
    """Return what is known of the nodes of `groups`, each of which stands before those it leads to.

    `layers` made the nodes in their forward, `lent` are storages that live anyway.
    """
    index = {node: position for position, node in enumerate(groups)}
    # Memory that several nodes keep is counted at the last of them, nearest to the image.
    owner = {one.storage: node for node in groups for one in kept[node] if one.storage not in lent}

    def words(one: SavedTensor, node: Node) -> str:
        shape = " × ".join(map(str, one.shape)) or "scalar"  # noqa: RUF001
        keeper = owner.get(one.storage)
        if keeper is None:
            return f"{one.name} {shape} (lives anyway)"
        if keeper is not node:
            return f"{one.name} {shape} (also kept by {layers.get(keeper) or graph.title(keeper)})"
        return f"{one.name} {shape}: {format_bytes(one.nbytes)}"

    def facts(node: Node) -> NodeFacts:
        variable = graph.leaf(node)
        known = [name for name, tensor in leaves.items() if tensor is variable]
        own = {one.storage: one.nbytes for one in kept[node] if owner.get(one.storage) is node}
        return NodeFacts(
            index=index[node],
            name=" of ".join([graph.title(node), *known]),
            group=groups[node],
            layer=layers.get(node, ""),
            follows=tuple(index[following] for following in graph.next_nodes(node)),
            kept="; ".join(words(one, node) for one in kept[node]),
            nbytes=sum(own.values()),
            is_function=graph.is_python_function(node),
            passes=tuple(passes[node]),
        )

    return {node: facts(node) for node in groups}
