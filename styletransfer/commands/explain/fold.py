"""Folds the nodes that were watched into the groups that the map shows."""

from torch.autograd.graph import Node

from styletransfer.commands.explain.facts import Group, NodeFacts
from styletransfer.commands.explain.watch import PRIOR, Watch, trunk_group
from styletransfer.lessons import graph


def fold(watch: Watch) -> tuple[Group, ...]:
    """Return the groups, from the image to the driver; those without a node are left out."""
    order = graph.walk(*watch.seen)
    index = {node: position for position, node in enumerate(order)}
    names = graph.leaf_names(order, {"image": watch.point})
    members: dict[str, list[NodeFacts]] = {"image": [], PRIOR: []}
    for layer, _ in watch.objective.network.named_children():
        members[watch.term_of_layer.get(layer) or trunk_group(layer)] = []
    members["driver"] = []
    for node in order:
        members[watch.group_of(node)].append(_facts(node, watch, index, names))
    on_trunk = {watch.group_of(node) for node in watch.trunk}
    # Memory that several groups keep belongs to the one nearest to the image.
    counted = set(watch.lent)
    groups: list[Group] = []
    for name, nodes in members.items():
        memory = {one.storage: one.nbytes for node in nodes for one in node.kept}
        nbytes = sum(size for storage, size in memory.items() if storage not in counted)
        counted |= set(memory)
        if nodes:
            kind, at = _kind(name)
            groups.append(Group(name, kind, at, name in on_trunk, tuple(nodes), nbytes))
    return tuple(groups)


def _facts(node: Node, watch: Watch, index: dict[Node, int], names: dict[Node, str]) -> NodeFacts:
    return NodeFacts(
        index=index[node],
        name=graph.title(node) + (f" of the {names[node]}" if node in names else ""),
        layer=watch.layer_of.get(node, ""),
        follows=tuple(index[following] for following in graph.next_nodes(node)),
        kept=watch.seen[node].kept,
        is_function=graph.is_python_function(node),
        passes=tuple(watch.seen[node].passes),
    )


def _kind(name: str) -> tuple[str, str]:
    """Return a group's kind, and the trunk group at which it is drawn."""
    if name == PRIOR:
        return "loss", "image"
    if "/" in name:
        return "loss", trunk_group(name.partition("/")[2])
    return name if name in ("image", "driver") else "trunk", name
