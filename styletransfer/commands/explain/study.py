"""Studies of whole evaluations: the real one under a loss mode, and one small enough to read."""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import Node
from torch.nn.modules.module import register_module_forward_hook
from torch.overrides import TorchFunctionMode

from styletransfer.commands.explain.facts import Group, NodeFacts, Pass, Study, format_bytes
from styletransfer.lessons import graph
from styletransfer.lessons.graph import SavedTensor
from styletransfer.objective.whole import Objective
from styletransfer.system.measure import counted

PRIOR = "total_variation"  # the one loss that hangs on the image itself, as in `Losses.terms`
SMALL = "e = (a + b) * d"  # the smallest graph with an intermediate in it
CODE = """\
a = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(3.0, requires_grad=True)
d = torch.tensor(4.0, requires_grad=True)
c = a + b
e = c * d
e.backward()"""


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
        self.layers = {module: name for name, module in objective.network.named_children()}
        self.term_of_layer = {self.layers[term.module]: term.name for term in objective.terms}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is not torch.Tensor.backward:
            return func(*args, **kwargs)
        nodes = graph.walk(graph.root(args[0]))
        self.kept |= {node: graph.saved(node) for node in nodes if node not in self.kept}
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

    def note(self, module: nn.Module, _: Any, output: Tensor) -> None:
        """Note of each node which layer's forward made it; a hook of all modules."""
        if module not in self.layers:
            return
        made = [output, getattr(module, "loss", None)]
        roots = [graph.root(tensor) for tensor in made if isinstance(tensor, Tensor)]
        for node in graph.walk(*roots):
            layer = "image" if graph.leaf(node) is not None else self.layers[module]
            self.layer_of.setdefault(node, layer)
        self.trunk = set(graph.walk(roots[0]))

    def groups(self) -> tuple[Group, ...]:
        """Fold the nodes into groups, from the image to the driver, leaving out empty ones."""
        order = graph.walk(*self.kept)
        home = {node: self._group_of(node) for node in order}
        leaves = {"the image": self.point}
        facts = describe(home, self.layer_of, self.kept, self.entered, leaves, self.lent)
        named = [self.term_of_layer.get(one) or trunk_group(one) for one in self.layers.values()]
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


def study(mode: str, objective: Objective, image: Tensor) -> Study:
    """Watch `objective`, in a loss mode, being evaluated at a copy of `image`.

    The image is (1, 3, H, W), sRGB in [0, 1]; the evaluation is the real `Objective.evaluate`.
    """
    point = image.detach().clone(memory_format=torch.contiguous_format).requires_grad_()
    known = [point, *objective.network.parameters(), *objective.network.buffers()]
    lent = {tensor.untyped_storage().data_ptr() for tensor in known}
    modules = {type(term.module) for term in objective.terms}
    methods = [(module, "backward") for module in modules if hasattr(module, "backward")]
    watch = Watch(objective, point, lent)
    with register_module_forward_hook(watch.note), counted(*methods) as by_driver, watch:
        objective.evaluate(point)
    losses = _forward(objective, point)
    nodes = graph.walk(*map(graph.root, losses))
    retention = {"after forward": graph.held(nodes, lent)}
    with counted(*methods) as by_autograd:
        torch.autograd.backward(losses, retain_graph=True)
    retention["after one backward with retain_graph=True"] = graph.held(nodes, lent)
    torch.autograd.backward(losses)
    retention["after one backward without it"] = graph.held(nodes, lent)
    refusal = "works: nothing that one pass frees is needed by another"
    losses = _forward(objective, point)
    try:  # one backward per loss without retain_graph=True
        for loss in losses:
            loss.backward()  # type: ignore[no-untyped-call]
    except RuntimeError as error:
        words = str(error).partition(". ")[0]
        refusal = f"torch refuses: {words[0].lower()}{words[1:]}"
    for term in objective.terms:
        term.module.loss = None  # type: ignore[assignment]
    return Study(
        mode=mode,
        groups=watch.groups(),
        passes=tuple(watch.passes),
        methods=tuple(sorted(f"{module.__name__}.backward" for module, _ in methods)),
        entered_by_driver=len(by_driver),
        entered_by_autograd=len(by_autograd),
        retention=retention,
        refusal=refusal,
    )


def _forward(objective: Objective, point: Tensor) -> list[Tensor]:
    objective.network(point)
    return [term.module.loss for term in objective.terms]  # type: ignore[misc]


def small_example() -> tuple[list[NodeFacts], list[tuple[str, float, float | None, str]]]:
    """Run `CODE`: its nodes; and each variable's name, value, `.grad`, and node."""
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
    for name, tensor in (leaves | {"c": c, "e": e}).items():
        grad = tensor.grad if tensor.is_leaf else None
        number = None if grad is None else grad.item()
        variables.append((name, tensor.item(), number, graph.title(graph.root(tensor))))
    return list(facts.values()), variables
