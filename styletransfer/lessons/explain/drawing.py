"""Draws the diagram of an autograd graph from the template `map.svg` and a Map's positions."""

from typing import Any

from styletransfer.lessons.explain.study import Group, Study

COLOURS = 7  # number of colours for backward passes in drawing.css, which repeat from the eighth on


class Map:
    """A Map computes positions in the diagram, in pixels: the network's layers (the trunk) lie from
    left to right, losses below them, and a line for each backward pass below the losses.
    """

    MARGIN, TOP = 24, 56  # space in pixels to the left of the trunk, and above it
    COLUMN, BOX = 150, 128  # distance between two groups of the trunk, and the width of a box
    HEIGHT, ROW = 60, 50  # height of a box of the trunk; distance between two losses
    PASS = 50  # distance between the lines of two backward passes

    def __init__(self, study: Study) -> None:
        self.study = study
        self.trunk = [group for group in study.groups if group.kind in ("image", "trunk")]
        self.losses = [group for group in study.groups if group.kind == "loss"]
        self.drivers = [group for group in study.groups if group.kind == "driver"]
        self.left = {each.name: self.MARGIN + self.COLUMN * n for n, each in enumerate(self.trunk)}
        self.right = self.MARGIN + self.COLUMN * len(self.trunk)
        # Loss -> its row: its number among the losses that read the same group of the trunk.
        columns = [loss.at for loss in self.losses]
        self.row = {loss.name: columns[:n].count(loss.at) for n, loss in enumerate(self.losses)}
        rows = 1 + max(self.row.values(), default=-1)
        self.sums = self.TOP + self.HEIGHT + 12 + self.ROW * rows
        self.backward = self.sums + (48 if self.drivers else 0) + 22
        self.height = self.backward + self.PASS * len(study.passes) + 84

    def corner(self, loss: Group) -> tuple[int, int]:
        """Return (x, y) of the upper left corner of a loss's box."""
        return self.left[loss.at], self.TOP + self.HEIGHT + 12 + self.ROW * self.row[loss.name]

    def marks(self, number: int) -> list[tuple[int, str, int]]:
        """Return (x, kind, number of entered nodes) of each group in the backward pass `number`.

        Groups that the pass did not enter are left out. The order is from right to left.
        """
        marks = []
        for group in self.study.groups:
            x = self.left.get(group.name, self.right - 40) + 24
            if group.kind == "loss":
                x = self.left[group.at] + 50 + 26 * self.row[group.name]
            marks.append((x, group.kind, group.entered(number)))
        return sorted((mark for mark in marks if mark[2]), reverse=True)

    def draw(self, alone: bool = False) -> str:
        """Return the drawing as SVG: for an HTML page or, if `alone`, for a separate file."""
        lines = summary(self.study)
        return render("map.svg", map=self, study=self.study, summary=lines, alone=alone)


def render(name: str, **values: Any) -> str:
    """Return the text of the template `name` in `templates/`, filled in with `values`."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    templates = Environment(
        loader=PackageLoader("styletransfer.lessons.explain"),
        autoescape=True,  # values are text, not HTML
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return templates.get_template(name).render(values, Map=Map, count=count, COLOURS=COLOURS)


def count(number: int, noun: str) -> str:
    """Return a number with its noun in the singular or plural: "1 node", "2 nodes"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def summary(study: Study) -> list[str]:
    """Return two lines of text, about all nodes of the graph and about its hand-written nodes."""
    visits = sum(len(node.passes) for node in study.nodes)
    nodes, entered = study.written()
    names = ", ".join(f"{number} {name}" for name, number in nodes.items())
    found = f"{names} among the nodes, entered {count(entered, 'time')}" if names else "none"
    if study.mode == "tensor_hook":
        found += " among these nodes; each hook enters one in a small graph of its own"
    return [
        f"{count(len(study.nodes), 'node')}, entered {count(visits, 'time')}",
        f"The losses' hand-written backwards: {found}",
    ]
