"""Draws as SVG: the map of an evaluation, and single nodes, one per row, as version control does.

All lengths are in pixels at natural size, where the smallest text is 12 high.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from itertools import pairwise
from pathlib import Path

from styletransfer.commands.explain import facts
from styletransfer.commands.explain.facts import Group, NodeFacts, Study, count, format_bytes

SANS = "system-ui, -apple-system, Segoe UI, DejaVu Sans, sans-serif"
MONO = "ui-monospace, DejaVu Sans Mono, monospace"
COLOURS = 7  # of passes and of lanes; more begin again
BOLD, PLAIN, LETTER = 8.2, 6.6, 7.25  # the advance of a letter 12 high, generously; in MONO
# The map.
MARGIN, TOP = 24, 56
COLUMN, BOX = 150, 116  # from trunk group to trunk group, and how wide one is
TRUNK_HEIGHT = 76
CHIP = 42  # a loss that is a node of the trunk
HANGING, HANGING_WIDTH = 52, 128  # a loss beside the trunk
DRIVER, PASS = 48, 50
BESIDE = 36  # from the trunk's count to that of the losses in the same column
# Rows of nodes.
ROW, LANE = 26, 18


def colour(number: int) -> str:
    """Return the class that colours a pass or a lane, counted from 1."""
    return f"c{(number - 1) % COLOURS + 1}"


class _Canvas:
    """An SVG that grows element by element; templates/drawing.css knows the styles."""

    def __init__(self, label: str, width: int = 0) -> None:
        self.label, self.width = label, width
        self.lines: list[str] = []

    def rect(self, style: str, x: int, y: int, width: float, height: int, radius: int = 0) -> None:
        place = f'x="{x}" y="{y}" width="{width:g}" height="{height}" rx="{radius}"'
        self.lines.append(f'<rect class="{style}" {place}/>')

    def circle(self, style: str, x: int, y: int, radius: float) -> None:
        self.lines.append(f'<circle class="{style}" cx="{x}" cy="{y}" r="{radius}"/>')

    def path(self, style: str, data: str) -> None:
        self.lines.append(f'<path class="{style}" d="{data}"/>')

    def text(self, style: str, x: int, y: int, words: str, letter: float = 0.0) -> None:
        """Write on a baseline; `letter` is how much room a letter is to have."""
        self.lines.append(f'<text class="{style}" x="{x}" y="{y}">{escape(words)}</text>')
        self.width = max(self.width, round(x + letter * len(words)))

    def spans(self, x: int, y: int, spans: Mapping[str, str]) -> None:
        """Write style -> words one after the other, leaving out what is empty."""
        spans = {style: words for style, words in spans.items() if words.strip()}
        texts = [f'<tspan class="{style}">{escape(text)}</tspan>' for style, text in spans.items()]
        self.lines.append(f'<text x="{x}" y="{y}" xml:space="preserve">{"  ".join(texts)}</text>')
        self.width = max(self.width, round(x + LETTER * len("  ".join(spans.values()))))

    @contextmanager
    def group(self, style: str, **data: str) -> Iterator[None]:
        attributes = "".join(f' data-{name}="{escape(value)}"' for name, value in data.items())
        self.lines.append(f'<g class="{style}"{attributes}>')
        yield
        self.lines.append("</g>")

    def svg(self, margin: int, height: int, font: str, role: str, alone: bool) -> str:
        """Return a file, which brings its colours with it, or an element of a page."""
        css = Path(__file__).with_name("templates") / "drawing.css"
        style = f"<style>\n{css.read_text(encoding='utf-8')}</style>\n" if alone else ""
        width = self.width + margin
        size = f'width="{width}" height="{height}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="drawing" {size} '
            f'viewBox="0 0 {width} {height}" role="{"img" if alone else role}" '
            f'aria-label="{escape(self.label)}" font-family="{font}">\n'
            f'{style}<rect class="paper" {size}/>\n' + "\n".join(self.lines) + "\n</svg>\n"
        )


class Map:
    """The trunk, its losses and one line per pass: forward runs right, backward runs left."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.trunk = [group for group in study.groups if group.kind in ("image", "trunk")]
        self.losses = {group.name: group for group in study.groups if group.kind == "loss"}
        self.drivers = [group for group in study.groups if group.kind == "driver"]
        self.left = {group.name: MARGIN + COLUMN * i for i, group in enumerate(self.trunk)}
        self.right = MARGIN + COLUMN * len(self.trunk)
        # A loss's row among those at the same column, on or beside the trunk.
        self.row: dict[str, int] = {}
        rows: Counter[tuple[bool, str]] = Counter()
        for loss in self.losses.values():
            self.row[loss.name] = rows[loss.on_trunk, loss.at]
            rows[loss.on_trunk, loss.at] += 1
        chips, hanging = (max(rows[on, name] for name in self.left) for on in (True, False))
        self.foot = TOP + TRUNK_HEIGHT + CHIP * chips
        self.bottom = self.foot + 16 + (HANGING + 8) * hanging
        label = f"The autograd graph of one evaluation, loss mode {study.mode}"
        self.canvas = _Canvas(label, self.right)

    def draw(self, alone: bool = False) -> str:
        """Draw it as an element of a page, or as a file of its own."""
        study, canvas = self.study, self.canvas
        canvas.text("strong heading", MARGIN, 24, f"{study.mode}: one evaluation")
        canvas.text("", MARGIN, 44, "forward →")
        for begin, end in pairwise(self.left.values()):
            canvas.path("wire trunk", f"M{begin + BOX} {TOP + 26}H{end}")
        for loss in self.losses.values():
            self._wire(loss)
        for group in self.trunk:
            self._trunk_box(group)
        for loss in self.losses.values():
            nodes = count(len(loss.nodes), "node")
            size = "" if loss.on_trunk else f" · {format_bytes(loss.nbytes)}"
            self._box(loss, *self._place(loss), loss.name, nodes + size)
        for driver in self.drivers:
            x = min(self.left[loss.at] for loss in self.losses.values())
            label = f"total = Σ weight · loss ({count(len(driver.nodes), 'node')})"
            self._box(driver, x, self.bottom + 8, self.right - x, 28, label)
        y = self.bottom + (DRIVER if self.drivers else 0) + 22
        passes, retained = study.passes, sum(one.retain_graph for one in study.passes)
        how = f", {retained} with retain_graph=True" if retained else ""
        heading = (
            f"← backward: {count(len(passes), 'call')} of Tensor.backward{how}. Nodes entered: in "
            "circles those of the trunk, in squares those of the losses and of their sum"
        )
        canvas.text("", MARGIN, y, heading, PLAIN)
        for number in range(1, len(study.passes) + 1):
            self._pass(number, y + PASS * number)
        y += PASS * len(study.passes) + 24
        for line in facts.summary(study):
            y += 20
            canvas.text("strong", MARGIN, y, line, BOLD)
        return canvas.svg(10, y + 20, SANS, "group", alone)

    def _box(self, group: Group, x: int, y: int, width: int, height: int, *lines: str) -> None:
        opens = f"{self.study.mode}.{group.name.replace(' ', '_')}"
        with self.canvas.group(f"group {group.style}", group=group.name, opens=opens):
            self.canvas.rect("box", x, y, width, height, 8)
            for row, line in enumerate(lines):
                style = "middle" if row else "middle name"
                self.canvas.text(style, x + width // 2, y + 18 + 16 * row, line)

    def _trunk_box(self, group: Group) -> None:
        # The leaf has nothing to unfold to but itself, and keeps nothing.
        lines = ["the leaf", "keeps .grad"]
        if group.kind != "image":
            lines = [count(len(group.nodes), "node"), format_bytes(group.nbytes)]
        x = self.left[group.name]
        self._box(group, x, TOP, BOX, self.foot - TOP, group.name, *lines)
        if group.nbytes:
            share = group.nbytes / max(other.nbytes for other in self.trunk)
            self.canvas.rect("empty", x + 9, TOP + 61, BOX - 18, 6, 3)
            self.canvas.rect("bar", x + 9, TOP + 61, max(3, round((BOX - 18) * share, 1)), 6, 3)

    def _place(self, loss: Group) -> tuple[int, int, int, int]:
        """Return a loss's left upper corner, width and height."""
        x, row = self.left[loss.at], self.row[loss.name]
        if loss.on_trunk:
            return x - 6, TOP + TRUNK_HEIGHT - 2 + row * CHIP, BOX + 12, CHIP - 4
        return x, self.foot + 16 + row * (HANGING + 8), HANGING_WIDTH, HANGING - 8

    def _wire(self, loss: Group) -> None:
        """Lead from the trunk down to a loss that hangs, and on to the driver if there is one."""
        x, y, width, height = self._place(loss)
        middle, edge = y + height // 2, x + width
        if not loss.on_trunk:
            self.canvas.path(f"wire {loss.style}", f"M{x + 8} {self.foot}v8h-16V{middle}h8")
        if self.drivers:
            rail = edge + (10 if loss.on_trunk else 4) + 3 * self.row[loss.name]
            self.canvas.path(f"wire {loss.style}", f"M{edge} {middle}H{rail}V{self.bottom + 8}")

    def _pass(self, number: int, y: int) -> None:
        marks: Counter[tuple[int, str]] = Counter()
        totals = {"in the trunk": 0, "in losses": 0, "in the sum": 0}
        for name, entered in self.study.entered(number).items():
            x, where = self.right - 16, "in the sum"
            if name in self.left:
                x, where = self.left[name] + BOX // 2, "in the trunk"
            elif name in self.losses:
                x, where = self.left[self.losses[name].at] + BOX // 2 + BESIDE, "in losses"
            marks[x, where] += entered
            totals[where] += entered
        parts = " + ".join(f"{total} {where}" for where, total in totals.items() if total)
        root, nodes = self.study.passes[number - 1].root, count(marks.total(), "node")
        end = min(marks)[0] - 36
        with self.canvas.group(f"pass {colour(number)}"):
            self.canvas.text("label", MARGIN, y - 18, f"{number}  {root}: {nodes} = {parts}", BOLD)
            self.canvas.path("way", f"M{max(marks)[0]} {y}H{end}")
            self.canvas.path("tip", f"M{end - 6} {y}l12 -6v12z")
            for (x, where), entered in sorted(marks.items()):
                if where == "in the trunk":
                    self.canvas.circle("mark", x, y, 11.5)
                else:
                    self.canvas.rect("mark", x - 12, y - 11, 24, 22)
                self.canvas.text("visits middle", x, y + 4, str(entered))


def draw_nodes(nodes: Sequence[NodeFacts], group: str, alone: bool = False) -> str:
    """Draw a group's nodes out of all, one per row, and hollow those elsewhere they lead to."""
    canvas = _Canvas(f"The nodes of {group}")
    led_to = {target for node in nodes if node.group == group for target in node.follows}
    rows = [node for node in nodes if node.group == group or node.index in led_to]
    drawn = dict.fromkeys(node.index for node in rows)
    lines = {
        node.index: [end for end in dict.fromkeys(node.follows) if end in drawn] for node in rows
    }
    lane = _lanes(lines)
    dots = {index: (14 + lane[index] * LANE, 17 + row * ROW) for row, index in enumerate(drawn)}
    for begin, ends in lines.items():
        for end in ends:
            (x0, y0), (x1, y1) = dots[begin], dots[end]
            # A line crosses to its lane within the first row.
            crossing = f"C{x0} {y0 + 14} {x1} {y0 + 12} {x1} {y0 + ROW}" if x0 != x1 else ""
            canvas.path(f"edge {colour(lane[end] + 1)}", f"M{x0} {y0}{crossing}V{y1}")
    for node in rows:
        style = "function" if node.is_function else "operation" if node.follows else "leaf"
        makers = (other for other in nodes if node.index in other.follows)
        came = ", ".join(dict.fromkeys(one.group for one in makers if one.index not in dots))
        spans = {"layer": f"{node.layer:<10}", style: node.name, "kept": node.kept}
        spans["came"] = came and f"◂ from {came}"
        if node.group != group:
            style, spans = "outside", {"layer": f"{node.name}, in {node.group}"}
        x, y = dots[node.index]
        canvas.circle(f"dot {style}", x, y, 5)
        canvas.spans(20 + LANE * (1 + max(lane.values())), y + 4, spans)
    return canvas.svg(16, ROW * len(rows) + 8, MONO, "img", alone)


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
