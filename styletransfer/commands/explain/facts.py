"""What is known of one evaluation, as plain data: the page, the figures and the tree read this."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from styletransfer.lessons.graph import SavedTensor


@dataclass(frozen=True)
class NodeFacts:
    """What is known of one node, after the graph itself is gone.

    Attributes:
        index: of the node in its study; it leads to greater ones only.
        name: such as "ReluBackward0"; for an AccumulateGrad, with its leaf.
        layer: the layer whose forward made it; "" outside the network.
        follows: indices of the nodes it leads to.
        kept: the tensors it keeps for its backward.
        is_function: it runs the backward of a `torch.autograd.Function`.
        passes: the backward passes that entered it, counted from 1.
    """

    index: int
    name: str
    layer: str
    follows: tuple[int, ...]
    kept: tuple[SavedTensor, ...]
    is_function: bool
    passes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Group:
    """Nodes that the map folds into one.

    Attributes:
        name: "image", "preprocess", "block 1", "style/relu1_1", "total_variation" or "driver".
        kind: "image", "trunk", "loss" or "driver".
        at: for a loss, the name of the trunk group that it hangs on; else its own name.
        on_trunk: every gradient on its way to the image from deeper layers runs through it.
        nodes: nearest to the loss first.
        nbytes: memory that these nodes keep and nobody below them does, in bytes, without what
            lives anyway: parameters, targets and the image.
    """

    name: str
    kind: str
    at: str
    on_trunk: bool
    nodes: tuple[NodeFacts, ...]
    nbytes: int


@dataclass(frozen=True)
class Pass:
    """One call of `Tensor.backward`.

    Attributes:
        root: the loss it was called on, such as "style/relu1_1", "total" or "total_variation".
        retain_graph: as it was called.
        visits: group name -> nodes that autograd entered, counted while it ran.
        held_before: bytes that the evaluation's graph keeps alive before the call.
        held_after: after it.
    """

    root: str
    retain_graph: bool
    visits: Mapping[str, int]
    held_before: int
    held_after: int

    @property
    def nodes(self) -> int:
        """How many nodes the pass entered."""
        return sum(self.visits.values())


@dataclass(frozen=True)
class Retention:
    """One forward, then one backward pass over all losses, with and without `retain_graph=True`.

    Attributes:
        before: bytes that the graph keeps alive after forward.
        retained: after a backward with retain_graph=True.
        freed: after a backward without.
        second_pass: what torch says when the losses are differentiated one by one without it;
            None if nothing stops it.
    """

    before: int
    retained: int
    freed: int
    second_pass: str | None


@dataclass(frozen=True)
class Written:
    """One hand-written backward among the nodes.

    Attributes:
        name: of its nodes, such as "ContentTapBackward".
        nodes: how many there are.
        entered: how often autograd entered them, all passes together.
    """

    name: str
    nodes: int
    entered: int


@dataclass(frozen=True)
class Study:
    """What one evaluation did.

    Attributes:
        mode: the loss mode.
        groups: from the image to the driver.
        passes: in the order of the calls.
        retention: what retain_graph=True costs.
        methods: names of ordinary `backward` methods of the loss modules; no node runs them.
        entered_by_driver: calls of these methods during the evaluation.
        entered_by_autograd: calls of them during one `loss.backward()` over all losses.
        lent: storages that live anyway.
    """

    mode: str
    groups: tuple[Group, ...]
    passes: tuple[Pass, ...]
    retention: Retention
    methods: tuple[str, ...]
    entered_by_driver: int
    entered_by_autograd: int
    lent: frozenset[int]

    @property
    def nodes(self) -> list[NodeFacts]:
        """All nodes, from the image's side to the losses'."""
        return [node for group in self.groups for node in group.nodes]

    @property
    def visits(self) -> int:
        """Nodes entered, summed over the passes."""
        return sum(one.nodes for one in self.passes)

    @property
    def kept(self) -> int:
        """Bytes that the graph alone keeps alive for backward, at the most."""
        return max(one.held_before for one in self.passes)

    def written(self, kind: str) -> tuple[Written, ...]:
        """Return the hand-written backwards among the nodes of all groups of one kind."""
        groups = [group for group in self.groups if group.kind == kind]
        nodes = [node for group in groups for node in group.nodes if node.is_function]
        entered = Counter(node.name for node in nodes for _ in node.passes)
        return tuple(
            Written(name, count, entered[name])
            for name, count in Counter(node.name for node in nodes).items()
        )
