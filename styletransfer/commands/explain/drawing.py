"""The map of an evaluation as SVG, drawn by `templates/map.svg`; lengths are in pixels."""

from typing import Any

from styletransfer.commands.explain.study import Group, Study
from styletransfer.resources import templates

COLOURS = 7  # number of pass colours in drawing.css; the eighth pass has the first colour


class Map:
    """Positions on the map: the trunk from left to right, losses below, then a line per pass."""

    MARGIN, TOP = 24, 56  # space left of and above the trunk
    COLUMN, BOX = 150, 128  # from one trunk group to the next, and the width of a box
    HEIGHT, ROW = 60, 50  # height of a trunk box; from a loss to the one below
    PASS = 50  # from a pass to the one below

    def __init__(self, study: Study) -> None:
        self.study = study
        self.trunk = [group for group in study.groups if group.kind in ("image", "trunk")]
        self.losses = [group for group in study.groups if group.kind == "loss"]
        self.drivers = [group for group in study.groups if group.kind == "driver"]
        names = (group.name for group in self.trunk)
        self.left = {name: self.MARGIN + self.COLUMN * n for n, name in enumerate(names)}
        self.right = self.MARGIN + self.COLUMN * len(self.trunk)
        # The number of each loss among those of the same trunk group.
        columns = [loss.at for loss in self.losses]
        rows = [columns[:number].count(at) for number, at in enumerate(columns)]
        self.row = dict(zip((loss.name for loss in self.losses), rows, strict=True))
        self.sums = self.TOP + self.HEIGHT + 12 + self.ROW * (1 + max(rows, default=-1))
        self.backward = self.sums + (48 if self.drivers else 0) + 22
        self.height = self.backward + self.PASS * len(study.passes) + 104

    def corner(self, loss: Group) -> tuple[int, int]:
        """Return (x, y) of the upper left corner of a loss's box."""
        return self.left[loss.at], self.TOP + self.HEIGHT + 12 + self.ROW * self.row[loss.name]

    def marks(self, number: int) -> list[tuple[int, str, int]]:
        """Return (x, kind, entered nodes) of each group that a pass entered, right to left."""
        marks = []
        for group in self.study.groups:
            x = self.right - 16
            if group.kind == "loss":
                x = self.left[group.at] + 50 + 26 * self.row[group.name]
            elif group.kind != "driver":
                x = self.left[group.name] + 24
            marks.append((x, group.kind, group.entered(number)))
        return sorted((mark for mark in marks if mark[2]), reverse=True)

    def draw(self, alone: bool = False) -> str:
        """Return the map as SVG for a page or, if `alone`, for its own file."""
        lines = summary(self.study)
        return render("map.svg", map=self, study=self.study, summary=lines, alone=alone)


def render(name: str, **values: Any) -> str:
    """Return a template of `templates/`, rendered with `values`."""
    tools = {"Map": Map, "count": count, "COLOURS": COLOURS}
    return templates("styletransfer.commands.explain").get_template(name).render(values | tools)


def count(number: int, noun: str) -> str:
    """Return "1 node", "2 nodes", "2 passes"."""
    plural = "es" if noun.endswith("s") else "s"
    return f"{number} {noun}{'' if number == 1 else plural}"


def summary(study: Study) -> list[str]:
    """Return three lines: the size of the graph, and which hand-written backwards were entered."""
    visits = sum(len(node.passes) for node in study.nodes)
    losses = _written(study, "loss")
    if study.methods:
        losses = (
            f"none; {' and '.join(study.methods)} are ordinary methods, which the driver entered "
            f"{count(study.entered_by_driver, 'time')} and autograd "
            f"{count(study.entered_by_autograd, 'time')}"
        )
    return [
        f"{count(len(study.nodes), 'node')}, entered {count(visits, 'time')}",
        f"The losses' hand-written backwards: {losses}",
        f"The trunk's hand-written backwards: {_written(study, 'trunk')}",
    ]


def _written(study: Study, kind: str) -> str:
    """Return in words which hand-written backwards the groups of one kind have."""
    nodes, entered = study.written(kind)
    names = ", ".join(f"{number} {name}" for name, number in nodes.items())
    return f"{names} among the nodes, entered {count(entered, 'time')}" if names else "none"
