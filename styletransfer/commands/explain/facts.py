"""What is known of one evaluation, and how to say it: page, map and terminal say the same."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class NodeFacts:
    """What is known of one node, after the graph itself is gone."""

    index: int  # in its graph; it leads to greater ones only
    name: str  # such as "ReluBackward0"; for an AccumulateGrad, with its leaf
    group: str  # into which the map folds it
    layer: str  # whose forward made it; "" outside the network
    follows: tuple[int, ...]  # indices of the nodes it leads to
    kept: str  # the tensors it keeps for its backward, in words
    # Kept by it and no node nearer to the image; parameters, targets and the image live anyway.
    nbytes: int
    is_function: bool  # it runs the backward of a `torch.autograd.Function`
    passes: tuple[int, ...]  # the backward passes that entered it, counted from 1


@dataclass(frozen=True)
class Group:
    """Nodes that the map folds into one, nearest to the loss first."""

    name: str  # "image", "preprocess", "block 1", "style/relu1_1", "total_variation" or "driver"
    kind: str  # "image", "trunk", "loss" or "driver"
    at: str  # for a loss, the name of the trunk group that it hangs on; else its own name
    on_trunk: bool  # every gradient on its way to the image from deeper layers runs through it
    nodes: tuple[NodeFacts, ...]

    @property
    def nbytes(self) -> int:
        """Memory that these nodes keep and nobody below them does, in bytes."""
        return sum(node.nbytes for node in self.nodes)

    @property
    def style(self) -> str:
        """The class that colours it: its kind, for a loss the kind of loss."""
        return self.name.partition("/")[0] if self.kind == "loss" else self.kind


@dataclass(frozen=True)
class Pass:
    """One call of `Tensor.backward`."""

    root: str  # the loss: "style/relu1_1", "total", "total_variation"
    retain_graph: bool
    held_before: int  # bytes that the graph of the evaluation kept alive
    held_after: int


@dataclass(frozen=True)
class Study:
    """What one evaluation did."""

    mode: str
    groups: tuple[Group, ...]  # from the image to the driver
    passes: tuple[Pass, ...]  # in the order of the calls
    methods: tuple[str, ...]  # ordinary `backward` methods of the loss modules; no node runs them
    entered_by_driver: int  # calls of these methods during the evaluation
    entered_by_autograd: int  # calls of them during one `backward` over all losses
    retention: Mapping[str, int]  # what was done -> bytes that the graph then kept alive
    refusal: str  # what comes of one backward per loss without retain_graph=True

    @property
    def nodes(self) -> list[NodeFacts]:
        """All nodes, each before those it leads to."""
        nodes = [node for group in self.groups for node in group.nodes]
        return sorted(nodes, key=lambda node: node.index)

    @property
    def visits(self) -> int:
        """Nodes entered, summed over the passes."""
        return sum(len(node.passes) for node in self.nodes)

    @property
    def kept(self) -> int:
        """Bytes that the graph alone keeps alive for backward, at the most."""
        return max(one.held_before for one in self.passes)

    def entered(self, number: int) -> Counter[str]:
        """Return group -> how many of its nodes a pass entered, the passes counted from 1."""
        return Counter(node.group for node in self.nodes if number in node.passes)

    def written(self, kind: str) -> tuple[Counter[str], int]:
        """Return hand-written backward -> its nodes in groups of a kind, and how often entered."""
        groups = [group for group in self.groups if group.kind == kind]
        nodes = [node for group in groups for node in group.nodes if node.is_function]
        return Counter(node.name for node in nodes), sum(len(node.passes) for node in nodes)


def format_bytes(nbytes: int) -> str:
    """Return bytes in the largest binary unit that leaves at least 1, such as "12.3 MiB"."""
    size, unit = float(nbytes), "B"
    for larger in ("KiB", "MiB", "GiB"):
        if size < 1000:
            break
        size, unit = size / 1024, larger
    return f"{size:.0f} {unit}" if size >= 10 or unit == "B" else f"{size:.1f} {unit}"


def count(number: int, one: str) -> str:
    """Return "1 node", "2 nodes", "2 passes"."""
    plural = "es" if one.endswith("s") else "s"
    return f"{number} {one}{'' if number == 1 else plural}"


def answers(study: Study) -> dict[str, str]:
    """Return whether autograd enters a backward that a person wrote in the losses, in the trunk."""
    losses = "No: there is none. The losses' nodes run autograd's own formulas."
    if written := _written(study, "loss"):
        losses = f"Yes: {written}."
    elif study.methods:
        losses = (
            f"{'Yes' if study.entered_by_autograd else 'No'}: {' and '.join(study.methods)} are "
            "ordinary methods, no nodes. The driver entered them "
            f"{count(study.entered_by_driver, 'time')}, "
            f"autograd {count(study.entered_by_autograd, 'time')}."
        )
    trunk = "No: there is none. The trunk's nodes run autograd's own formulas."
    if written := _written(study, "trunk"):
        trunk = f"Yes, whatever the loss mode: {written}. They belong to the network's own layers."
    return {"In the losses": losses, "In the trunk": trunk}


def _written(study: Study, kind: str) -> str:
    """Say which hand-written backwards the groups of one kind have, "" if none."""
    nodes, entered = study.written(kind)
    names = ", ".join(f"{number} {name}" for name, number in nodes.items())
    return names and f"{names} among the nodes, entered {count(entered, 'time')}"


def summary(study: Study) -> list[str]:
    """Return three lines for the foot of the map: size, and both answers."""
    last = study.passes[-1].held_after
    after = f"{format_bytes(last)} still kept afterwards" if last else "all freed afterwards"
    methods = f" ({' and '.join(study.methods)}: ordinary methods)" if study.methods else ""
    return [
        f"{count(len(study.nodes), 'node')}, entered {count(study.visits, 'time')}; "
        f"{format_bytes(study.kept)} kept for backward, {after}",
        f"The losses' hand-written backwards: {_written(study, 'loss') or 'none'}{methods}",
        f"The trunk's hand-written backwards: {_written(study, 'trunk') or 'none'}",
    ]
