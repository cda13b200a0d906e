"""Lays the map of one evaluation out: the trunk, its losses, and one line per backward pass.

All lengths are in pixels at natural size, where the smallest text is 12 high;
templates/map.svg draws what is placed here.
"""

from dataclasses import dataclass

from styletransfer.commands.explain.facts import Group, Pass, Study
from styletransfer.commands.explain.words import count, format_bytes, summarise

COLUMN = 150  # from trunk group to trunk group
BOX = 116
MARGIN = 24
TOP = 56
TRUNK_HEIGHT = 76
CHIP = 42  # a loss that is a node of the trunk
HANGING, HANGING_WIDTH = 52, 128  # a loss beside the trunk
DRIVER = 48
LANE = 50
BESIDE = 36  # from the trunk's count to that of the losses in the same column
BOLD, PLAIN = 8.2, 6.6  # the advance of a letter 12 high, generously
COLOURS = 7  # of the passes; more passes begin again


@dataclass(frozen=True)
class Box:
    """One group's rectangle.

    Attributes:
        name: the group's.
        style: the class that colours it: kind of group, or of loss.
        x, y, width, height: its place.
        lines: text, the first one bold.
        share: of the longest memory bar; None for no bar.
    """

    name: str
    style: str
    x: int
    y: int
    width: int
    height: int
    lines: tuple[str, ...]
    share: float | None = None


@dataclass(frozen=True)
class Mark:
    """How many nodes a pass entered at one place; `of` is "trunk", "loss" or "driver"."""

    x: int
    of: str
    visits: int


@dataclass(frozen=True)
class Lane:
    """One backward pass, from `begin` left to `end`; the marks add up to its nodes."""

    colour: int
    label: str
    y: int
    begin: int
    end: int
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class Map:
    """The whole map.

    Attributes:
        mode: the loss mode.
        width, height: of the drawing.
        boxes: of all groups.
        wires: (style of its loss or "trunk", path data).
        heading: above the lanes.
        heading_y: its baseline.
        lanes: one per pass.
        summary: (baseline, line).
    """

    mode: str
    width: int
    height: int
    boxes: tuple[Box, ...]
    wires: tuple[tuple[str, str], ...]
    heading: str
    heading_y: int
    lanes: tuple[Lane, ...]
    summary: tuple[tuple[int, str], ...]


def lay_out_map(study: Study) -> Map:
    """Place everything: forward runs right, backward passes run left."""
    trunk = [group for group in study.groups if group.kind in ("image", "trunk")]
    losses = [group for group in study.groups if group.kind == "loss"]
    drivers = [group for group in study.groups if group.kind == "driver"]
    left = {group.name: MARGIN + COLUMN * column for column, group in enumerate(trunk)}
    row = _rows(losses)
    chips, hanging = (
        max((row[one.name] + 1 for one in losses if one.on_trunk is on_trunk), default=0)
        for on_trunk in (True, False)
    )
    foot = TOP + TRUNK_HEIGHT + CHIP * chips
    bottom = foot + 16 + (HANGING + 8) * hanging
    right = MARGIN + COLUMN * len(trunk)
    boxes = [_trunk_box(one, left[one.name], foot, trunk) for one in trunk]
    wires = [("trunk", f"M{x + BOX} {TOP + 26}h{COLUMN - BOX}") for x in list(left.values())[:-1]]
    for one in losses:
        boxes.append(_loss_box(one, left[one.at], foot, row[one.name]))
        wires += _loss_wires(boxes[-1], one, foot, row[one.name], bottom if drivers else None)
    for driver in drivers:
        x = min(left[one.at] for one in losses)
        label = f"total = Σ weight · loss ({count(len(driver.nodes), 'node')})"
        boxes.append(Box(driver.name, "driver", x, bottom + 8, right - x, 28, (label,)))
    heading_y = bottom + (DRIVER if drivers else 0) + 22
    lanes = [
        _lane(number, one, left, losses, right, heading_y + LANE * number)
        for number, one in enumerate(study.passes, start=1)
    ]
    below = heading_y + LANE * len(lanes) + 44
    summary = [(below + 20 * row, line) for row, line in enumerate(summarise(study))]
    heading = _heading(study.passes)
    bold = [*(line for _, line in summary), *(lane.label for lane in lanes)]
    longest = max(PLAIN * len(heading), *(BOLD * len(line) for line in bold))
    return Map(
        study.mode,
        max(right, round(MARGIN + longest)) + 10,
        below + 20 * len(summary),
        tuple(boxes),
        tuple(wires),
        heading,
        heading_y,
        tuple(lanes),
        tuple(summary),
    )


def style_of(group: Group) -> str:
    """Return the class that colours a group: its kind, for a loss the kind of loss."""
    return group.name.partition("/")[0] if group.kind == "loss" else group.kind


def colour_of(number: int) -> int:
    """Return which of the colours pass `number` has, both counted from 1."""
    return (number - 1) % COLOURS + 1


def _rows(losses: list[Group]) -> dict[str, int]:
    """Return loss -> its row among those at the same column, on or beside the trunk."""
    taken: dict[tuple[str, bool], int] = {}
    row: dict[str, int] = {}
    for one in losses:
        place = (one.at, one.on_trunk)
        row[one.name] = taken.get(place, 0)
        taken[place] = row[one.name] + 1
    return row


def _trunk_box(group: Group, x: int, foot: int, trunk: list[Group]) -> Box:
    # The leaf has nothing to unfold to but itself, and keeps nothing.
    lines = ("the leaf", "keeps .grad")
    if group.kind != "image":
        lines = (count(len(group.nodes), "node"), format_bytes(group.nbytes))
    most = max(one.nbytes for one in trunk)
    share = group.nbytes / most if group.nbytes else None
    return Box(group.name, group.kind, x, TOP, BOX, foot - TOP, (group.name, *lines), share)


def _loss_box(group: Group, x: int, foot: int, row: int) -> Box:
    if group.on_trunk:
        lines = (group.name, count(len(group.nodes), "node"))
        y = TOP + TRUNK_HEIGHT - 2 + row * CHIP
        return Box(group.name, style_of(group), x - 6, y, BOX + 12, CHIP - 4, lines)
    lines = (group.name, f"{count(len(group.nodes), 'node')} · {format_bytes(group.nbytes)}")
    y = foot + 16 + row * (HANGING + 8)
    return Box(group.name, style_of(group), x, y, HANGING_WIDTH, HANGING - 8, lines)


def _loss_wires(
    box: Box, group: Group, foot: int, row: int, bottom: int | None
) -> list[tuple[str, str]]:
    """From the trunk down to a loss that hangs, and on to the driver where there is one."""
    middle = box.y + box.height // 2
    wires = []
    if not group.on_trunk:
        wires.append(f"M{box.x + 8} {foot}v8h-16V{middle}h8")
    if bottom is not None:
        edge = box.x + box.width
        rail = edge + (10 if group.on_trunk else 4) + 3 * row
        wires.append(f"M{edge} {middle}H{rail}V{bottom + 8}")
    return [(box.style, wire) for wire in wires]


def _lane(
    number: int, one: Pass, left: dict[str, int], losses: list[Group], right: int, y: int
) -> Lane:
    """Count what the pass entered, column by column: the trunk's nodes and the losses' apart."""
    at = {loss.name: loss.at for loss in losses}
    visits: dict[tuple[int, str], int] = {}
    for name, entered in one.visits.items():
        if name in left:
            place = (left[name] + BOX // 2, "trunk")
        elif name in at:
            place = (left[at[name]] + BOX // 2 + BESIDE, "loss")
        else:
            place = (right - 16, "driver")
        visits[place] = visits.get(place, 0) + entered
    marks = tuple(Mark(x, of, entered) for (x, of), entered in sorted(visits.items()))
    parts = [
        f"{total} {name}"
        for of, name in (("trunk", "in the trunk"), ("loss", "in losses"), ("driver", "in the sum"))
        if (total := sum(mark.visits for mark in marks if mark.of == of))
    ]
    label = f"{number}  {one.root}: {count(one.nodes, 'node')} = {' + '.join(parts)}"
    end = min(mark.x for mark in marks) - 36
    return Lane(colour_of(number), label, y, marks[-1].x, end, marks)


def _heading(passes: tuple[Pass, ...]) -> str:
    retained = sum(one.retain_graph for one in passes)
    kept = f", {retained} with retain_graph=True" if retained else ""
    return (
        f"← backward: {count(len(passes), 'call')} of Tensor.backward{kept}. Nodes entered: in "
        "circles those of the trunk, in squares those of the losses and of their sum"
    )
