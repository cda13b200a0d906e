"""Records the autograd graph of one evaluation: its nodes in groups, and the backward passes."""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import BackwardCFunction
from torch.autograd.graph import Node
from torch.nn.modules.module import register_module_forward_hook
from torch.overrides import TorchFunctionMode

from styletransfer.lessons import graph
from styletransfer.objective.whole import Objective

PRIOR = "total_variation"  # name of the only loss here that reads the image itself, not features


@dataclass(frozen=True)
class NodeFacts:
    """NodeFacts holds what is recorded about one node of the graph, but not the node itself."""

    name: str  # such as "ReluBackward0"
    is_function: bool  # whether the node runs the backward of a `torch.autograd.Function`
    passes: tuple[int, ...]  # the backward passes that entered the node, numbered from 0


@dataclass(frozen=True)
class Group:
    """A Group holds nodes that are drawn as one box; the group "driver" adds up the losses."""

    name: str  # "image", "preprocess", "block 1", "style/relu1_1", "total_variation" or "driver"
    on_trunk: bool  # whether gradients of deeper layers pass through the group
    nodes: tuple[NodeFacts, ...]  # sorted: each node before those that get its gradient

    @property
    def kind(self) -> str:
        """The kind of group: "image", "trunk", "loss" or "driver"."""
        if self.name == PRIOR or "/" in self.name:
            return "loss"
        return self.name if self.name in ("image", "driver") else "trunk"

    @property
    def at(self) -> str:
        """The name of the group whose output a loss reads: a group of layers, or "image"."""
        return "image" if self.name == PRIOR else trunk_group(self.name.partition("/")[2])

    def entered(self, number: int) -> int:
        """Return how many of the group's nodes the backward pass `number` (from 0) entered."""
        return sum(number in node.passes for node in self.nodes)


@dataclass(frozen=True)
class Pass:
    """A Pass is one call of `Tensor.backward`."""

    root: str  # name of the tensor: a loss such as "style/relu1_1", "total" (the sum) or "output"
    retain_graph: bool  # the argument of the call


@dataclass(frozen=True)
class Study:
    """A Study is the record of one evaluation of the losses and their gradient."""

    mode: str  # name of the loss mode
    groups: tuple[Group, ...]  # in the order of the forward pass, from the image to the total loss
    passes: tuple[Pass, ...]  # in the order of the calls

    @property
    def nodes(self) -> list[NodeFacts]:
        """All nodes of the graph, group by group."""
        return [node for group in self.groups for node in group.nodes]

    def written(self) -> tuple[Counter[str], int]:
        """Return name -> count of losses' hand-written nodes, and how often they are entered."""
        losses = (group.nodes for group in self.groups if group.kind == "loss")
        nodes = [node for each in losses for node in each if node.is_function]
        return Counter(node.name for node in nodes), sum(len(node.passes) for node in nodes)


class Watch(TorchFunctionMode):
    """Watch records each `Tensor.backward` call in its `with` block, and the nodes entered."""

    def __init__(self, objective: Objective) -> None:
        super().__init__()
        self.terms = objective.terms
        losses: dict[nn.Module, str] = {term.module: term.name for term in objective.terms}
        layers = objective.network.named_children()
        self.group_of = {layer: losses.get(layer) or trunk_group(name) for name, layer in layers}
        self.home: dict[Node, str] = {}  # node -> group of the layer whose forward made the node
        self.reached: dict[Node, None] = {}  # nodes that a pass can reach, an ordered set
        self.entered: defaultdict[Node, list[int]] = defaultdict(list)  # node -> its pass numbers
        self.trunk: set[Node] = set()  # nodes between the image and the deepest layer's output
        self.passes: list[Pass] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is not torch.Tensor.backward:
            return func(*args, **kwargs)
        nodes = graph.walk(graph.root(args[0]))
        self.reached |= dict.fromkeys(nodes)
        with graph.count_visits(nodes) as visits:
            func(*args, **kwargs)
        for node in visits.elements():
            self.entered[node].append(len(self.passes))
        total = "output" if args[0].dim() else "total"  # the mode tensor_hook calls output.backward
        if {self.home.get(node) for node in nodes}.isdisjoint(term.name for term in self.terms):
            total = PRIOR
        root = next((term.name for term in self.terms if term.module.loss is args[0]), total)
        self.passes.append(Pass(root, bool(kwargs.get("retain_graph"))))
        return None

    def note(self, module: nn.Module, _: Any, output: Tensor) -> None:
        """Record the nodes that the forward of `module` made; a forward hook of all modules."""
        if module not in self.group_of:
            return
        made = [output, getattr(module, "loss", None)]
        roots = [graph.root(x) for x in made if isinstance(x, Tensor) and x.requires_grad]
        for node in graph.walk(*roots):
            is_image = hasattr(node, "variable")  # an AccumulateGrad, which fills a leaf's `.grad`
            self.home.setdefault(node, "image" if is_image else self.group_of[module])
        self.trunk = set(graph.walk(roots[0]))

    def groups(self) -> tuple[Group, ...]:
        """Return the groups that are not empty, from the image to the nodes that add the losses."""
        names = ("image", PRIOR, *self.group_of.values(), "driver")
        members: dict[str, list[Node]] = {name: [] for name in names}
        facts: dict[Node, NodeFacts] = {}
        for node in graph.walk(*self.reached):
            # A node that leads to no layer's node belongs to the loss that reads the image itself.
            below = {self.home.get(each, "image") for each in graph.walk(node)}
            other = PRIOR if below == {"image"} else "driver"
            members[self.home.get(node, other)].append(node)
            is_function = isinstance(node, BackwardCFunction)
            facts[node] = NodeFacts(node.name(), is_function, tuple(self.entered[node]))
        return tuple(
            Group(name, bool(self.trunk & {*nodes}), tuple(facts[node] for node in nodes))
            for name, nodes in members.items()
            if nodes
        )


def trunk_group(layer: str) -> str:
    """Return a layer's group: "block 1" for conv1_2 or pool1; its own name if it has no number."""
    number = re.search(r"\d+", layer.rpartition("/")[2])  # drops the name of a region
    return f"block {number.group()}" if number else layer


def study(objective: Objective, image: Tensor) -> Study:
    """Return the record of one `objective.evaluate` at a copy of `image` (1, 3, H, W) in [0, 1]."""
    point = image.detach().clone(memory_format=torch.contiguous_format).requires_grad_()
    watch = Watch(objective)
    with register_module_forward_hook(watch.note), watch:
        objective.evaluate(point)
    return Study(objective.mode.name, watch.groups(), tuple(watch.passes))
