"""Draws the map of one evaluation: trunk, losses, and one line per backward pass."""

from html import escape

from styletransfer.commands.explain.facts import Group, Pass, Study

COLUMN = 138  # one trunk group
BOX = 104
MARGIN = 24
LABELS = 190  # room for the passes' names, right of the trunk
TOP = 56
TRUNK_HEIGHT = 74
CHIP = 24  # a loss that is a node of the trunk
HANGING, HANGING_WIDTH = 46, 114  # a loss beside the trunk
LANE = 30

INK, MUTED, LINE, PAPER = "#1f2937", "#5b6472", "#94a3b8", "#ffffff"
FILLS = {
    "image": ("#d1fae5", "#059669"),
    "trunk": ("#eef2f7", "#94a3b8"),
    "content": ("#fef0c7", "#c2700a"),
    "style": ("#ece6fd", "#7c3aed"),
    "total_variation": ("#dbeafe", "#2563c9"),
    "driver": ("#f3f4f6", "#5b6472"),
}
PASS_COLOURS = ("#0f6fde", "#d1432b", "#178a4c", "#a13fb8", "#b7791f", "#0e8a96", "#c2357a")


def draw_map(study: Study) -> str:
    """Return an SVG picture that stands alone: forward runs right, backward passes run left.

    Each group is a `<g class="group" data-group="NAME">`, so that a page can make it a button.
    """
    trunk = [group for group in study.groups if group.kind in ("image", "trunk")]
    losses = [group for group in study.groups if group.kind == "loss"]
    driver = next((group for group in study.groups if group.kind == "driver"), None)
    left = {group.name: MARGIN + COLUMN * column for column, group in enumerate(trunk)}
    right = MARGIN + COLUMN * len(trunk)
    most = max(group.nbytes for group in trunk) or 1

    chips = {name: [one for one in losses if one.at == name and one.on_trunk] for name in left}
    hanging = {
        name: [one for one in losses if one.at == name and not one.on_trunk] for name in left
    }
    trunk_height = TRUNK_HEIGHT + CHIP * max(map(len, chips.values()))
    y = TOP + trunk_height
    parts = [_arrowheads(study.passes)]
    parts.append(_text(MARGIN, 24, f"{study.mode}: one evaluation", 15, INK, bold=True))
    parts.append(_text(MARGIN, 43, "forward →", 11.5, MUTED))
    for column, group in enumerate(trunk):
        x = left[group.name]
        if column:
            parts.append(_path(f"M{x - COLUMN + BOX} {TOP + 26}H{x}", LINE, 2))
        parts.append(_trunk_box(group, x, trunk_height, group.nbytes / most, chips[group.name]))

    bottom = y + 16 + (HANGING + 8) * max(map(len, hanging.values()))
    for name, here in [*chips.items(), *hanging.items()]:
        for row, group in enumerate(here):
            x, top = left[name], y + 16 + row * (HANGING + 8)
            middle = TOP + TRUNK_HEIGHT + 6 + row * CHIP if group.on_trunk else top + 21
            if driver is not None:
                edge = x + (BOX + 5 if group.on_trunk else HANGING_WIDTH)
                rail = x + HANGING_WIDTH + 5 + 3 * row
                parts.append(_path(f"M{edge} {middle}H{rail}V{bottom + 8}", _stroke(group), 1.5))
            if not group.on_trunk:
                down = f"M{x + 8} {y}V{y + 8}H{x - 8}V{middle}h8"
                parts.append(_path(down, _stroke(group), 1.5))
                parts.append(_loss_box(group, x, top))
    y = bottom
    if driver is not None:
        parts.append(_driver_box(driver, min(left[one.at] for one in losses), right, y + 8))
        y += 52
    y += 12
    parts.append(_text(MARGIN, y + 8, _heading(study.passes), 11.5, MUTED))
    y += 32
    for number, one in enumerate(study.passes, start=1):
        parts.append(_lane(number, one, trunk, losses, left, right, y))
        y += LANE
    for line in _summary(study):
        parts.append(_text(MARGIN, y + 6, line, 12.5, INK, bold=True))
        y += 20
    width, height = right + LABELS, y + 4
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" '
        f'font-family="system-ui, -apple-system, Segoe UI, DejaVu Sans, sans-serif">'
        f"<title>The autograd graph of one evaluation, loss mode {study.mode}</title>"
        f'<rect width="{width}" height="{height}" fill="{PAPER}"/>{"".join(parts)}</svg>\n'
    )


def format_bytes(nbytes: int) -> str:
    """Return bytes in the largest binary unit that leaves at least 1, such as "12.3 MiB"."""
    size, unit = float(nbytes), "B"
    for larger in ("KiB", "MiB", "GiB"):
        if size < 1000:
            break
        size, unit = size / 1024, larger
    return f"{size:.0f} {unit}" if size >= 10 or unit == "B" else f"{size:.1f} {unit}"


def pass_colour(number: int) -> str:
    """Return the colour of pass `number`, counted from 1."""
    return PASS_COLOURS[(number - 1) % len(PASS_COLOURS)]


def _trunk_box(group: Group, x: int, height: int, share: float, chips: list[Group]) -> str:
    fill, stroke = FILLS[group.kind]
    # The leaf has nothing to unfold to but itself, and keeps nothing.
    lines = ["the leaf", "keeps .grad"] if group.kind == "image" else []
    lines = lines or [_count(len(group.nodes), "node", "nodes"), format_bytes(group.nbytes)]
    parts = [
        _rect(x, TOP, BOX, height, fill, stroke, 8),
        _text(x + BOX / 2, TOP + 20, group.name, 13, INK, bold=True, middle=True),
        _text(x + BOX / 2, TOP + 37, lines[0], 11.5, MUTED, middle=True),
        _text(x + BOX / 2, TOP + 52, lines[1], 11.5, MUTED, middle=True),
    ]
    if group.nbytes:
        parts.append(_rect(x + 9, TOP + 59, BOX - 18, 6, "#dde3ea", "none", 3))
        parts.append(_rect(x + 9, TOP + 59, max(3, (BOX - 18) * share), 6, "#64748b", "none", 3))
    made = _group(group.name, "".join(parts))
    for row, chip in enumerate(chips):
        top = TOP + TRUNK_HEIGHT - 4 + row * CHIP
        fill, stroke = FILLS[chip.name.partition("/")[0]]
        label = _text(x + BOX / 2, top + 14, chip.name, 10.5, stroke, bold=True, middle=True)
        made += _group(chip.name, _rect(x - 5, top, BOX + 10, 20, fill, stroke, 10) + label)
    return made


def _loss_box(group: Group, x: int, top: int) -> str:
    fill, stroke = FILLS[group.name.partition("/")[0]]
    size = f"{len(group.nodes)} nodes · {format_bytes(group.nbytes)}"
    body = _rect(x, top, HANGING_WIDTH, HANGING - 4, fill, stroke, 8)
    body += _text(x + 8, top + 17, group.name, 11, stroke, bold=True)
    return _group(group.name, body + _text(x + 8, top + 33, size, 10.5, MUTED))


def _driver_box(driver: Group, x: int, right: int, y: int) -> str:
    """Draw the sum that all losses run into."""
    fill, stroke = FILLS["driver"]
    width = right - x
    label = f"total = Σ weight · loss ({_count(len(driver.nodes), 'node', 'nodes')})"
    body = _rect(x, y, width, 30, fill, stroke, 8)
    body += _text(x + width / 2, y + 19.5, label, 12, INK, bold=True, middle=True)
    return _group(driver.name, body)


def _lane(
    number: int,
    one: Pass,
    trunk: list[Group],
    losses: list[Group],
    left: dict[str, int],
    right: int,
    y: int,
) -> str:
    """Draw one pass from its loss to the image, with the nodes it entered in each trunk group."""
    colour = pass_colour(number)
    columns = {name: x + BOX / 2 for name, x in left.items()}
    on_trunk = {loss.name: loss.at for loss in losses if loss.on_trunk}
    counts = dict.fromkeys(columns, 0)
    for name, visits in one.visits.items():
        at = on_trunk.get(name, name)
        if at in counts:
            counts[at] += visits
    entered = [columns[group.name] for group in trunk if counts[group.name]]
    begin, end = max(entered, default=columns["image"]) + 46, columns["image"] - 30
    parts = [
        f'<path d="M{begin} {y}H{end}" stroke="{colour}" stroke-width="3" fill="none" '
        f'marker-end="url(#arrow{number})"/>',
        f'<circle cx="{begin}" cy="{y}" r="5" fill="{colour}"/>',
    ]
    for name, visits in counts.items():
        if visits:
            x = columns[name]
            parts.append(f'<circle cx="{x}" cy="{y}" r="10.5" fill="{PAPER}" stroke="{colour}"/>')
            parts.append(_text(x, y + 4, str(visits), 11, INK, middle=True))
    label = f"{one.root}: {_count(one.nodes, 'node', 'nodes')}"
    parts.append(f'<path d="M{begin + 8} {y}H{right}" stroke="#d5dae1" stroke-dasharray="2 3"/>')
    parts.append(_text(right + 6, y + 4, label, 11, colour, bold=True))
    return "".join(parts)


def _heading(passes: tuple[Pass, ...]) -> str:
    retained = sum(one.retain_graph for one in passes)
    kept = f", {retained} with retain_graph=True" if retained else ""
    calls = _count(len(passes), "call", "calls")
    return f"← backward: {calls} of Tensor.backward{kept}; circles count the nodes entered"


def _summary(study: Study) -> list[str]:
    last = study.passes[-1].held_after
    after = f"{format_bytes(last)} still kept afterwards" if last else "all freed afterwards"
    written = ", ".join(f"{count} {name}" for name, count in study.functions.items()) or "none"
    methods = f" ({' and '.join(study.methods)}: ordinary methods)" if study.methods else ""
    return [
        f"{_count(len(study.nodes), 'node', 'nodes')}, entered {study.visits} times; "
        f"{format_bytes(study.kept)} kept for backward, {after}",
        f"Losses' hand-written backwards among the nodes: {written}{methods}",
    ]


def _arrowheads(passes: tuple[Pass, ...]) -> str:
    heads = "".join(
        f'<marker id="arrow{number}" viewBox="0 0 10 10" refX="6" refY="5" markerWidth="4.5" '
        f'markerHeight="4.5" orient="auto"><path d="M0 0L10 5L0 10z" fill="{pass_colour(number)}"/>'
        "</marker>"
        for number in range(1, len(passes) + 1)
    )
    return f"<defs>{heads}</defs>"


def _stroke(loss: Group) -> str:
    return FILLS[loss.name.partition("/")[0]][1]


def _count(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"


def _group(name: str, body: str) -> str:
    return f'<g class="group" data-group="{escape(name)}">{body}</g>'


def _path(d: str, colour: str, width: float) -> str:
    return f'<path d="{d}" stroke="{colour}" stroke-width="{width}" fill="none"/>'


def _rect(
    x: float, y: float, width: float, height: float, fill: str, stroke: str, radius: int
) -> str:
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius}" '
        f'fill="{fill}" stroke="{stroke}"/>'
    )


def _text(
    x: float,
    y: float,
    text: str,
    size: float,
    colour: str,
    *,
    bold: bool = False,
    middle: bool = False,
) -> str:
    style = (' font-weight="600"' if bold else "") + (' text-anchor="middle"' if middle else "")
    place = f'x="{x:g}" y="{y:g}" font-size="{size:g}"'
    return f'<text {place} fill="{colour}"{style}>{escape(text)}</text>'
