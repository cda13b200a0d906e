"""Draws as SVG: the map of an evaluation, and single nodes, one per row, as version control does.

The marks themselves are in `templates/`. All lengths are in pixels at natural size, where the
smallest text is 12 high.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any

from jinja2 import Environment

from styletransfer.commands.explain import facts
from styletransfer.commands.explain.facts import Group, NodeFacts, Study, count
from styletransfer.commands.explain.study import CODE, SMALL
from styletransfer.resources import templates

COLOURS = 7  # of passes and of lanes; more begin again
BOLD, PLAIN, LETTER = 8.2, 6.6, 7.25  # the advance of a letter 12 high, generously; of nodes
ROW, LANE = 26, 18  # of nodes


def colour(number: int) -> str:
    """Return the class that colours a pass or a lane, counted from 1."""
    return f"c{(number - 1) % COLOURS + 1}"


@cache
def _templates() -> Environment:
    files = templates("styletransfer.commands.explain")
    tools = (Map, colour, draw_nodes, facts.answers, count, facts.format_bytes)
    files.globals |= {tool.__name__: tool for tool in tools} | {"CODE": CODE, "SMALL": SMALL}
    return files


def rendered(name: str, **values: Any) -> str:
    """Return a file of `templates/` with values in their places."""
    return _templates().get_template(name).render(values)


class Map:
    """The trunk, its losses and one line per pass: forward runs right, backward runs left."""

    MARGIN, TOP = 24, 56
    COLUMN, BOX = 150, 116  # from trunk group to trunk group, and how wide one is
    TRUNK_HEIGHT = 76
    CHIP = 42  # a loss that is a node of the trunk
    HANGING, HANGING_WIDTH = 52, 128  # a loss beside the trunk
    DRIVER, PASS = 48, 50
    BESIDE = 36  # from the trunk's count to that of the losses in the same column

    def __init__(self, study: Study) -> None:
        self.study = study
        self.trunk = [group for group in study.groups if group.kind in ("image", "trunk")]
        self.losses = {group.name: group for group in study.groups if group.kind == "loss"}
        self.drivers = [group for group in study.groups if group.kind == "driver"]
        self.left = {one.name: self.MARGIN + self.COLUMN * i for i, one in enumerate(self.trunk)}
        self.right = self.MARGIN + self.COLUMN * len(self.trunk)
        # A loss's row among those at the same column, on or beside the trunk.
        self.row: dict[str, int] = {}
        rows: Counter[tuple[bool, str]] = Counter()
        for loss in self.losses.values():
            self.row[loss.name] = rows[loss.on_trunk, loss.at]
            rows[loss.on_trunk, loss.at] += 1
        chips, hanging = (max(rows[on, name] for name in self.left) for on in (True, False))
        self.foot = self.TOP + self.TRUNK_HEIGHT + self.CHIP * chips
        self.bottom = self.foot + 16 + (self.HANGING + 8) * hanging
        # Where the losses' sum and the backward passes begin.
        self.sum = min((self.left[loss.at] for loss in self.losses.values()), default=self.MARGIN)
        self.backward = self.bottom + (self.DRIVER if self.drivers else 0) + 22

    def draw(self, alone: bool = False) -> str:
        """Draw it as an element of a page, or as a file of its own."""
        passes = self.study.passes
        retained = sum(one.retain_graph for one in passes)
        how = f", {retained} with retain_graph=True" if retained else ""
        heading = (
            f"← backward: {count(len(passes), 'call')} of Tensor.backward{how}. Nodes entered: in "
            "circles those of the trunk, in squares those of the losses and of their sum"
        )
        marked = [self._pass(number) for number in range(1, len(passes) + 1)]
        summary = facts.summary(self.study)
        longest = max(len(line) for line in [*summary, *(label for label, _ in marked)])
        width = round(self.MARGIN + max(PLAIN * len(heading), BOLD * longest))
        return rendered(
            "map.svg",
            map=self,
            heading=heading,
            passes=marked,
            summary=summary,
            alone=alone,
            width=max(self.right, width) + 10,
            height=self.backward + self.PASS * len(passes) + 24 + 20 * len(summary) + 20,
        )

    def place(self, loss: Group) -> tuple[int, int, int, int]:
        """Return a loss's left upper corner, width and height."""
        x, row = self.left[loss.at], self.row[loss.name]
        if loss.on_trunk:
            top = self.TOP + self.TRUNK_HEIGHT - 2
            return x - 6, top + row * self.CHIP, self.BOX + 12, self.CHIP - 4
        top = self.foot + 16 + row * (self.HANGING + 8)
        return x, top, self.HANGING_WIDTH, self.HANGING - 8

    def _pass(self, number: int) -> tuple[str, list[tuple[int, str, int]]]:
        """Say what a pass entered, in all, and from left to right: x, where, how many nodes."""
        marks: Counter[tuple[int, str]] = Counter()
        totals = {"in the trunk": 0, "in losses": 0, "in the sum": 0}
        for name, entered in self.study.entered(number).items():
            x, where = self.right - 16, "in the sum"
            if name in self.left:
                x, where = self.left[name] + self.BOX // 2, "in the trunk"
            elif name in self.losses:
                x = self.left[self.losses[name].at] + self.BOX // 2 + self.BESIDE
                where = "in losses"
            marks[x, where] += entered
            totals[where] += entered
        parts = " + ".join(f"{total} {where}" for where, total in totals.items() if total)
        root, nodes = self.study.passes[number - 1].root, count(marks.total(), "node")
        drawn = [(x, where, entered) for (x, where), entered in sorted(marks.items())]
        return f"{number}  {root}: {nodes} = {parts}", drawn


def draw_nodes(nodes: Sequence[NodeFacts], group: str, alone: bool = False) -> str:
    """Draw a group's nodes out of all, one per row, and hollow those elsewhere they lead to."""
    led_to = {target for node in nodes if node.group == group for target in node.follows}
    rows = [node for node in nodes if node.group == group or node.index in led_to]
    drawn = dict.fromkeys(node.index for node in rows)
    lines = {
        node.index: [end for end in dict.fromkeys(node.follows) if end in drawn] for node in rows
    }
    lane = _lanes(lines)
    dots = {index: (14 + lane[index] * LANE, 17 + row * ROW) for row, index in enumerate(drawn)}
    edges = []
    for begin, ends in lines.items():
        for end in ends:
            (x0, y0), (x1, y1) = dots[begin], dots[end]
            # A line crosses to its lane within the first row.
            crossing = f"C{x0} {y0 + 14} {x1} {y0 + 12} {x1} {y0 + ROW}" if x0 != x1 else ""
            edges.append((colour(lane[end] + 1), f"M{x0} {y0}{crossing}V{y1}"))
    texts = [(node, _row(node, group, nodes, drawn)) for node in rows]
    indent = 20 + LANE * (1 + max(lane.values()))
    longest = max(len("  ".join(spans.values())) for _, (_, spans) in texts)
    return rendered(
        "nodes.svg",
        group=group,
        edges=edges,
        indent=indent,
        alone=alone,
        rows=[(style, dots[node.index], spans) for node, (style, spans) in texts],
        width=round(indent + LETTER * longest) + 16,
        height=ROW * len(rows) + 8,
    )


def _row(
    node: NodeFacts, group: str, nodes: Sequence[NodeFacts], drawn: Collection[int]
) -> tuple[str, dict[str, str]]:
    """Return the class of a node's dot, and class -> words of what is written beside it."""
    if node.group != group:
        return "outside", {"layer": f"{node.name}, in {node.group}"}
    style = "function" if node.is_function else "operation" if node.follows else "leaf"
    makers = (other for other in nodes if node.index in other.follows)
    came = ", ".join(dict.fromkeys(one.group for one in makers if one.index not in drawn))
    spans = {"layer": f"{node.layer:<10}", style: node.name, "kept": node.kept}
    spans["came"] = came and f"◂ from {came}"
    return style, {kind: words for kind, words in spans.items() if words.strip()}


def _lanes(lines: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """Return node -> lane, where every line runs in the lane of the node that it leads to."""
    lanes: dict[int, int] = {}
    waiting: list[int | None] = []  # lane -> the node that lines in it lead to

    def lane_of(node: int) -> int:
        """Return the lane that waits for a node, taking a free one if there is none yet."""
        if node not in waiting:
            if None not in waiting:
                waiting.append(None)
            waiting[waiting.index(None)] = node
        return waiting.index(node)

    for begin, ends in lines.items():
        lanes[begin] = lane = lane_of(begin)
        waiting[lane] = None
        for end in ends:
            if end not in waiting and waiting[lane] is None:
                waiting[lane] = end  # the first line goes straight on
            lane_of(end)
    return lanes
