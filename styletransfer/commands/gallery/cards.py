"""What is shown of one run: its picture, its values, its losses, its curve, its command."""

import base64
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from PIL import Image

from styletransfer.commands.gallery.found import FoundRun
from styletransfer.commands.gallery.table import Axis
from styletransfer.errors import UserError
from styletransfer.pictures import images
from styletransfer.pictures.convert import small_picture
from styletransfer.runs.folder import Step
from styletransfer.settings.values import command

# Longer sides in pixels: of a page's previews, the fewer the larger, and of the sheet's pictures.
LARGEST, SMALLEST, THUMBNAIL = 960, 320, 256
MANY = 24  # runs whose previews have their full side; beyond, the page's size grows no more
QUALITY = 85
# The plot in templates/curve.svg, in its units, and the most points of a line that are seen.
LEFT, RIGHT, TOP, BOTTOM, POINTS = 52, 312, 10, 156, 200
DECADES = 4  # drawn below the highest loss; what is lower lies on the ground


@dataclass(frozen=True)
class Preview:
    """A picture, made small."""

    uri: str  # a JPEG as a data URI, for the page
    size: tuple[int, int]  # width and height of it in pixels
    thumbnail: Image.Image  # for the contact sheet


@dataclass(frozen=True)
class Curve:
    """The losses of a run over its steps."""

    lines: dict[str, str]  # name -> corners as SVG has them, "x,y x,y"; the total comes first
    scales: list[float]  # x where a finer scale begins
    # loss -> y of the powers of ten, or of both ends where fewer than two are in sight
    levels: dict[str, float]
    last: int  # the number of the last step


@dataclass(frozen=True)
class Card:
    """One run, ready to be shown."""

    run: FoundRun  # what it has left
    preview: Preview | None  # its picture, None if there is none to show
    missing: str  # why there is none; "" if there is
    values: dict[str, str]  # key -> value of what was varied
    others: dict[str, str]  # key -> value of what differs along with it
    # name -> weighted loss at the last step, with "total"; empty if none is known
    losses: dict[str, float]
    curve: Curve | None  # over its steps, None if there is nothing to draw
    command: str  # to copy; "" if none was recorded

    @property
    def label(self) -> str:
        """Its values, or its name where nothing was varied."""
        named = [f"{key} {value}" for key, value in self.values.items()]
        return ", ".join(named) or self.run.name


def make_cards(
    runs: Sequence[FoundRun], varied: Sequence[Axis], axes: Sequence[Axis]
) -> list[Card]:
    """Return a card for each run, which differ in `axes`, of which some were `varied`."""
    side = preview_side(len(runs))
    cards = []
    for number, run in enumerate(runs):
        preview, missing = None, f"no picture: the run is {run.status}"
        if run.picture is not None:
            try:
                preview, missing = make_preview(run.picture, side), ""
            except UserError as error:
                missing = str(error)
        card = Card(
            run=run,
            preview=preview,
            missing=missing,
            values={axis.key: axis.values[number] for axis in varied},
            others={axis.key: axis.values[number] for axis in axes if axis not in varied},
            losses=dict(run.steps[-1].losses) if run.steps else {},
            curve=lay_out_curve(run.steps),
            command=command(run.typed),
        )
        cards.append(card)
    return cards


def preview_side(count: int) -> int:
    """Return the longer side in pixels of each of so many previews."""
    return max(SMALLEST, min(LARGEST, round(LARGEST * math.sqrt(MANY / max(count, 1)))))


def make_preview(path: Path, side: int) -> Preview:
    """Return a picture at most `side` long, white where transparent (UserError: unreadable)."""
    image = small_picture(images.read(path), side)
    buffer = io.BytesIO()
    image.save(buffer, format="JPEG", quality=QUALITY)
    code = base64.b64encode(buffer.getvalue()).decode("ascii")
    small = image.copy()
    small.thumbnail((THUMBNAIL, THUMBNAIL), Image.Resampling.LANCZOS)
    return Preview(f"data:image/jpeg;base64,{code}", image.size, small)


def lay_out_curve(steps: Sequence[Step]) -> Curve | None:
    """Return the curve of a run, on a logarithmic scale; None if there is nothing to draw."""
    seen = [value for step in steps for value in step.losses.values() if value > 0]
    if len(steps) < 2 or not seen:
        return None
    high = math.log10(max(seen))
    low = max(math.log10(min(seen)), high - DECADES)
    span, first, last = high - low or 1.0, steps[0].step, steps[-1].step

    def x(step: Step) -> float:
        return LEFT + (RIGHT - LEFT) * (step.step - first) / max(last - first, 1)

    def y(loss: float) -> float:
        height = (math.log10(loss) - low) / span if loss > 0 else 0.0
        return BOTTOM - (BOTTOM - TOP) * max(height, 0.0)

    drawn = [*steps[: -1 : math.ceil(len(steps) / POINTS)], steps[-1]]
    lines: dict[str, list[str]] = {}
    for step in drawn:
        for name, loss in step.losses.items():
            lines.setdefault(name, []).append(f"{x(step):.1f},{y(loss):.1f}")
    powers = [10.0**power for power in range(math.ceil(low), math.floor(high) + 1)]
    marks = powers if len(powers) > 1 else [10**low, 10**high]
    return Curve(
        lines={name: " ".join(corners) for name, corners in lines.items()},
        scales=[x(after) for before, after in pairwise(steps) if after.scale != before.scale],
        levels={f"{mark:.3g}": y(mark) for mark in marks},
        last=last,
    )


def ranks(cards: Sequence[Card], axes: Sequence[Axis]) -> dict[str, list[int]]:
    """Return what can be sorted by -> the place of each card: lowest first, unknown values last."""
    names = (name for card in cards for name in card.losses)
    kinds = dict.fromkeys(name.partition("/")[0] for name in names)
    columns = {f"{kind} loss": [_sum(card, kind) for card in cards] for kind in kinds}
    columns["time"] = [math.inf if card.run.seconds is None else card.run.seconds for card in cards]
    columns |= {
        axis.key: [float(axis.position(number)) for number in range(len(cards))] for axis in axes
    }
    orders = {
        name: sorted(range(len(cards)), key=values.__getitem__) for name, values in columns.items()
    }
    return {name: [order.index(n) for n in range(len(cards))] for name, order in orders.items()}


def _sum(card: Card, kind: str) -> float:
    """Return the sum of a card's losses of one kind, such as "style"; infinity if it has none."""
    losses = [loss for name, loss in card.losses.items() if name.partition("/")[0] == kind]
    return sum(losses) if losses else math.inf
