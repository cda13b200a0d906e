"""Draws nodes one per row, as version control draws commits: lines on the left lead downwards."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from styletransfer.commands.explain.facts import NodeFacts
from styletransfer.commands.explain.graph_svg import INK, MUTED, PAPER, format_bytes
from styletransfer.lessons.graph import Saved

ROW = 26
STEP = 18  # from lane to lane
FUNCTION, LEAF = "#be1e6a", "#059669"
LINE_COLOURS = ("#64748b", "#7c3aed", "#c2700a", "#0e8a96", "#c2357a", "#178a4c")


@dataclass
class _Layout:
    """Where each row's dot sits, and which lines run from dot to dot.

    Attributes:
        rows: node index -> its row.
        lane: node index -> its lane; every line runs in the lane of the node that it leads to.
        edges: (from node, to node).
    """

    rows: dict[int, int] = field(default_factory=dict)
    lane: dict[int, int] = field(default_factory=dict)
    edges: list[tuple[int, int]] = field(default_factory=list)


def draw_lanes(
    nodes: Sequence[NodeFacts],
    *,
    outside: Mapping[int, tuple[NodeFacts, str]] | None = None,
    entered_from: Mapping[int, str] | None = None,
    lent: Collection[int] = (),
    owners: Mapping[int, NodeFacts] | None = None,
    width: int = 1140,
) -> str:
    """Return an SVG of `nodes`, one row each, each before those it leads to.

    Args:
        nodes: of one group.
        outside: index -> node of another group that these lead to, drawn hollow, and its text.
        entered_from: index -> the groups that lead to it and are not drawn.
        lent: storages that live anyway.
        owners: storage -> the node nearest to the image that keeps it; there it is counted.
        width: in user units; the text is 12 of them high.
    """
    outside, entered_from, owners = outside or {}, entered_from or {}, owners or {}
    layout = _lay_out([*nodes, *(node for node, _ in outside.values())])
    text_x = 20 + STEP * (1 + max(layout.lane.values()))
    parts = [_edge(layout, *edge) for edge in layout.edges]
    for node in nodes:
        x, y = _dot(layout, node.index)
        fill = FUNCTION if node.is_function else INK if node.follows else LEAF
        parts.append(f'<circle cx="{x}" cy="{y}" r="5" fill="{fill}" stroke="{PAPER}"/>')
        layer = f"{node.layer:<10} " if node.layer else ""
        kept = "; ".join(_kept(one, node, lent, owners) for one in node.kept)
        came = entered_from.get(node.index)
        parts.append(
            f'<text x="{text_x}" y="{y + 4}" xml:space="preserve" fill="{MUTED}">{escape(layer)}'
            f'<tspan fill="{fill}" font-weight="600">{escape(node.name)}</tspan>  {escape(kept)}'
            + (f'<tspan fill="{FUNCTION}">  ◂ {escape(came)}</tspan>' if came else "")
            + "</text>"
        )
    for index, (_, description) in outside.items():
        x, y = _dot(layout, index)
        parts.append(f'<circle cx="{x}" cy="{y}" r="4.5" fill="{PAPER}" stroke="{MUTED}"/>')
        parts.append(f'<text x="{text_x}" y="{y + 4}" fill="{MUTED}">{escape(description)}</text>')
    height = ROW * len(layout.rows) + 8
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" '
        f'font-family="ui-monospace, DejaVu Sans Mono, monospace" font-size="12">'
        f'<rect width="{width}" height="{height}" fill="{PAPER}"/>{"".join(parts)}</svg>\n'
    )


def _lay_out(nodes: Sequence[NodeFacts]) -> _Layout:
    """Give each node on the way a lane of its own, from the first line towards it to its row."""
    layout = _Layout()
    order = sorted(nodes, key=lambda node: node.index)
    layout.rows = {node.index: row for row, node in enumerate(order)}
    waiting: list[int | None] = []  # lane -> the node that lines in it lead to
    for node in order:
        lane = _lane_of(node.index, waiting)
        layout.lane[node.index] = lane
        waiting[lane] = None
        for target in dict.fromkeys(node.follows):
            if target in layout.rows:
                layout.edges.append((node.index, target))
                if target not in waiting and waiting[lane] is None:
                    waiting[lane] = target  # the first line goes straight on
                _lane_of(target, waiting)
    return layout


def _lane_of(index: int, waiting: list[int | None]) -> int:
    """Return the lane that waits for node `index`, taking a free one if there is none yet."""
    if index not in waiting:
        if None not in waiting:
            waiting.append(None)
        waiting[waiting.index(None)] = index
    return waiting.index(index)


def _dot(layout: _Layout, index: int) -> tuple[int, int]:
    return 14 + layout.lane[index] * STEP, 4 + ROW // 2 + layout.rows[index] * ROW


def _edge(layout: _Layout, begin: int, end: int) -> str:
    """Draw a line that crosses to its lane within the first row."""
    x0, y0 = _dot(layout, begin)
    x1, y1 = _dot(layout, end)
    crossing = f"C{x0} {y0 + 14} {x1} {y0 + 12} {x1} {y0 + ROW}" if x0 != x1 else ""
    colour = LINE_COLOURS[layout.lane[end] % len(LINE_COLOURS)]
    return f'<path d="M{x0} {y0}{crossing}V{y1}" stroke="{colour}" stroke-width="2" fill="none"/>'


def _kept(
    one: Saved, node: NodeFacts, lent: Collection[int], owners: Mapping[int, NodeFacts]
) -> str:
    """Describe one kept tensor: its shape, and its bytes unless they are counted elsewhere."""
    shape = " × ".join(map(str, one.shape)) or "scalar"  # noqa: RUF001
    owner = owners.get(one.storage, node)
    if one.storage in lent:
        return f"{one.name} {shape} (lives anyway)"
    if owner is not node:
        return f"{one.name} {shape} (also kept by {owner.layer or owner.name})"
    return f"{one.name} {shape}: {format_bytes(one.nbytes)}"
