"""Lays one study out as a tree for the terminal."""

from collections.abc import Sequence

from rich.markup import escape
from rich.tree import Tree

from styletransfer.commands.explain.facts import Group, Study
from styletransfer.commands.explain.small_example import SmallExample
from styletransfer.commands.explain.words import (
    answers,
    count,
    describe_retention,
    figures,
    format_bytes,
)


def draw_tree(study: Study, setting: str) -> Tree:
    """Return the passes, the folded trunk with its losses, and what retain_graph=True keeps."""
    tree = Tree(f"[bold]{study.mode}[/]: {escape(setting)}")
    passes = tree.add(
        f"[bold]backward passes[/]: {len(study.passes)}, entering {study.visits} nodes in all"
    )
    for number, one in enumerate(study.passes, start=1):
        passes.add(
            f"{number} [cyan]{one.root}[/]: {count(one.nodes, 'node')}, "
            f"retain_graph={one.retain_graph}, "
            f"kept {format_bytes(one.held_before)} before, {format_bytes(one.held_after)} after"
        )
    kept = format_bytes(study.kept)
    trunk = tree.add(f"[bold]graph[/]: {len(study.nodes)} nodes, {kept} kept for backward")
    branches = {
        group.name: trunk.add(_line(group, "green" if group.kind == "image" else "blue"))
        for group in study.groups
        if group.kind != "loss"
    }
    for group in study.groups:
        if group.kind == "loss":
            how = "on the trunk" if group.on_trunk else "beside the trunk"
            branches[group.at].add(f"{_line(group, 'magenta')}, {how}")
    called = tree.add("[bold]is a hand-written backward ever called?[/]")
    for scope, answer in answers(study):
        called.add(f"[cyan]{scope}[/]: {answer}")
    retention = tree.add("[bold]what the graph keeps alive[/]")
    for done, size in describe_retention(study):
        retention.add(f"{done}: {escape(size)}")
    return tree


def draw_comparison(studies: Sequence[Study]) -> Tree:
    """Return the numbers of all loss modes, one below the other."""
    tree = Tree("[bold]the loss modes side by side[/]")
    for study in studies:
        branch = tree.add(f"[bold]{study.mode}[/]")
        for value, label in figures(study):
            branch.add(f"[cyan]{value}[/] {label}")
    return tree


def draw_small_tree(example: SmallExample) -> Tree:
    """Return the small example's nodes and, below them, its variables."""
    tree = Tree("[bold]e = (a + b) * d[/] with a=2, b=3, d=4")
    node_of = {node.index: node for node in example.nodes}

    def grow(branch: Tree, index: int) -> None:
        node = node_of[index]
        here = branch.add(f"{node.layer} {node.name}".strip())
        for following in node.follows:
            grow(here, following)

    grow(tree, example.nodes[0].index)
    for one in example.variables:
        grad = "None" if one.grad is None else f"{one.grad:g}"
        tree.add(f"[cyan]{one.name}[/] = {one.value:g}, .grad {grad}: {one.why}")
    return tree


def _line(group: Group, colour: str) -> str:
    names = ""
    if group.on_trunk and group.kind == "loss":
        names = " (" + ", ".join(node.name for node in group.nodes) + ")"
    nodes = count(len(group.nodes), "node")
    return f"[{colour}]{group.name}[/]: {nodes}{names}, {format_bytes(group.nbytes)}"
