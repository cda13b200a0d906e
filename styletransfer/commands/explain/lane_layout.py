"""Lays nodes out one per row, as version control draws commits: lines on the left lead downwards.

All lengths are in pixels at natural size; templates/lanes.svg draws what is placed here.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from styletransfer.commands.explain.facts import Group, NodeFacts, Study
from styletransfer.commands.explain.words import format_bytes
from styletransfer.lessons.graph import SavedTensor

ROW = 26
STEP = 18  # from lane to lane
CHARACTER = 7.25  # the advance of a monospaced letter 12 high
COLOURS = 6


@dataclass(frozen=True)
class Row:
    """One node: where its dot sits, and the text beside it.

    Attributes:
        x, y: of the dot.
        style: "function", "leaf", "operation", or "outside" for a node of another group.
        layer: whose forward made it, padded; "" outside the network.
        name: of the node.
        kept: the tensors it keeps.
        came: the groups that lead to it and are not drawn, or "".
    """

    x: int
    y: int
    style: str
    layer: str
    name: str
    kept: str = ""
    came: str = ""

    @property
    def text(self) -> str:
        """All of it, as long as it is drawn."""
        return "  ".join(part for part in (self.layer, self.name, self.kept, self.came) if part)


@dataclass(frozen=True)
class Lanes:
    """The rows, and the lines between their dots as (colour, path data)."""

    width: int
    height: int
    text_x: int
    rows: tuple[Row, ...]
    edges: tuple[tuple[int, str], ...]


@dataclass
class _Grid:
    """Which row and lane each node has.

    Attributes:
        row: node index -> its row.
        lane: node index -> its lane; every line runs in the lane of the node that it leads to.
        edges: (from node, to node).
    """

    row: dict[int, int] = field(default_factory=dict)
    lane: dict[int, int] = field(default_factory=dict)
    edges: list[tuple[int, int]] = field(default_factory=list)

    def dot(self, index: int) -> tuple[int, int]:
        return 14 + self.lane[index] * STEP, 4 + ROW // 2 + self.row[index] * ROW


def lay_out_lanes(
    nodes: Sequence[NodeFacts],
    *,
    outside: Mapping[int, tuple[NodeFacts, str]] | None = None,
    entered_from: Mapping[int, str] | None = None,
    lent: Collection[int] = (),
    owners: Mapping[int, NodeFacts] | None = None,
) -> Lanes:
    """Place `nodes`, one row each, each before those it leads to.

    Args:
        nodes: of one group.
        outside: index -> node of another group that these lead to, drawn hollow, and its text.
        entered_from: index -> the groups that lead to it and are not drawn.
        lent: storages that live anyway.
        owners: storage -> the node nearest to the image that keeps it; there it is counted.
    """
    outside, entered_from, owners = outside or {}, entered_from or {}, owners or {}
    grid = _place([*nodes, *(node for node, _ in outside.values())])
    rows = []
    for node in nodes:
        style = "function" if node.is_function else "operation" if node.follows else "leaf"
        kept = "; ".join(_kept(one, node, lent, owners) for one in node.kept)
        layer = f"{node.layer:<10}" if node.layer else ""
        came = entered_from.get(node.index)
        rows.append(
            Row(*grid.dot(node.index), style, layer, node.name, kept, f"◂ {came}" if came else "")
        )
    rows += [Row(*grid.dot(index), "outside", "", text) for index, (_, text) in outside.items()]
    text_x = 20 + STEP * (1 + max(grid.lane.values()))
    width = text_x + round(CHARACTER * max(len(row.text) for row in rows)) + 16
    edges = tuple(_edge(grid, *edge) for edge in grid.edges)
    return Lanes(width, ROW * len(rows) + 8, text_x, tuple(rows), edges)


def lay_out_groups(study: Study) -> list[tuple[Group, Lanes]]:
    """Place every group's nodes, with those of other groups that they lead to."""
    home = {node.index: (node, group) for group in study.groups for node in group.nodes}
    owners: dict[int, NodeFacts] = {}
    for group in study.groups:
        for node in reversed(group.nodes):
            for one in node.kept:
                owners.setdefault(one.storage, node)
    placed = []
    for group in study.groups:
        inside = {node.index for node in group.nodes}
        drawn = inside | {index for node in group.nodes for index in node.follows}
        outside = {
            index: (home[index][0], f"{home[index][0].name}, in {home[index][1].name}")
            for index in sorted(drawn - inside)
        }
        came: dict[int, dict[str, None]] = {}
        for begin, (node, other) in home.items():
            for index in node.follows:
                if begin not in drawn and index in inside:
                    came.setdefault(index, {})[other.name] = None
        entered = {index: f"from {', '.join(names)}" for index, names in came.items()}
        lanes = lay_out_lanes(
            group.nodes, outside=outside, entered_from=entered, lent=study.lent, owners=owners
        )
        placed.append((group, lanes))
    return placed


def _place(nodes: Sequence[NodeFacts]) -> _Grid:
    """Give each node on the way a lane of its own, from the first line towards it to its row."""
    grid = _Grid()
    order = sorted(nodes, key=lambda node: node.index)
    grid.row = {node.index: row for row, node in enumerate(order)}
    waiting: list[int | None] = []  # lane -> the node that lines in it lead to
    for node in order:
        lane = _lane_of(node.index, waiting)
        grid.lane[node.index] = lane
        waiting[lane] = None
        for target in dict.fromkeys(node.follows):
            if target in grid.row:
                grid.edges.append((node.index, target))
                if target not in waiting and waiting[lane] is None:
                    waiting[lane] = target  # the first line goes straight on
                _lane_of(target, waiting)
    return grid


def _lane_of(index: int, waiting: list[int | None]) -> int:
    """Return the lane that waits for node `index`, taking a free one if there is none yet."""
    if index not in waiting:
        if None not in waiting:
            waiting.append(None)
        waiting[waiting.index(None)] = index
    return waiting.index(index)


def _edge(grid: _Grid, begin: int, end: int) -> tuple[int, str]:
    """Return colour and path of a line that crosses to its lane within the first row."""
    x0, y0 = grid.dot(begin)
    x1, y1 = grid.dot(end)
    crossing = f"C{x0} {y0 + 14} {x1} {y0 + 12} {x1} {y0 + ROW}" if x0 != x1 else ""
    return grid.lane[end] % COLOURS + 1, f"M{x0} {y0}{crossing}V{y1}"


def _kept(
    one: SavedTensor, node: NodeFacts, lent: Collection[int], owners: Mapping[int, NodeFacts]
) -> str:
    """Describe one kept tensor: its shape, and its bytes unless they are counted elsewhere."""
    shape = " × ".join(map(str, one.shape)) or "scalar"  # noqa: RUF001
    owner = owners.get(one.storage, node)
    if one.storage in lent:
        return f"{one.name} {shape} (lives anyway)"
    if owner is not node:
        return f"{one.name} {shape} (also kept by {owner.layer or owner.name})"
    return f"{one.name} {shape}: {format_bytes(one.nbytes)}"
