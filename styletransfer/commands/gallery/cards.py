"""What is shown of each run, and the contact sheet: all pictures as one, to be printed."""

import base64
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import matplotlib
from PIL import Image, ImageDraw, ImageFont, ImageOps

from styletransfer.commands.gallery.found import Axis, FoundRun, Section, shown
from styletransfer.errors import UserError
from styletransfer.pictures import images
from styletransfer.pictures.convert import jpeg, small_picture
from styletransfer.runs.folder import Step

# Longer sides in pixels: of a page's previews, the fewer the larger, and of the sheet's pictures.
LARGEST, SMALLEST, THUMBNAIL = 960, 320, 256
MANY = 24  # runs whose previews have their full side; beyond, the page's size grows no more
QUALITY = 85
# The plot in templates/curve.svg, in its units, and the most points of a line that are seen.
LEFT, RIGHT, TOP, BOTTOM, POINTS = 52, 312, 10, 156, 200
DECADES = 4  # drawn below the highest loss; what is lower lies on the ground
# Of the sheet, in pixels: between cells, of the column of row headings, from line to line, and
# from letter to letter.
GAP, HEADINGS, LINE, LETTER = 12, 208, 18, 8
PAPER, INK, EMPTY = "#ffffff", "#1f2937", "#dfe3e8"
ACROSS = 6  # pictures side by side where there is no table, at most
CAPTION = 3  # lines of text under a picture, at most


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


@dataclass(frozen=True)
class Card:
    """One run, ready to be shown."""

    run: FoundRun  # what it has left
    preview: Preview | None  # its picture, None if there is none to show
    missing: str  # why there is none; "" if there is
    values: dict[str, str]  # key -> value of what was varied
    others: dict[str, str]  # key -> value of what differs along with it
    curve: Curve | None  # over its steps, None if there is nothing to draw

    @property
    def label(self) -> str:
        """Its values, or its name where nothing was varied."""
        named = [f"{key} {value}" for key, value in self.values.items()]
        return ", ".join(named) or self.run.name


def make_cards(
    runs: Sequence[FoundRun], varied: Sequence[Axis], axes: Sequence[Axis]
) -> list[Card]:
    """Return a card for each run, which differ in `axes`, of which some were `varied`."""
    side = max(SMALLEST, min(LARGEST, round(LARGEST * math.sqrt(MANY / max(len(runs), 1)))))
    cards = []
    for number, run in enumerate(runs):
        preview, missing = None, f"no picture: the run is {shown(run.record.status)}"
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
            curve=lay_out_curve(run.steps),
        )
        cards.append(card)
    return cards


def make_preview(path: Path, side: int) -> Preview:
    """Return a picture at most `side` long, white where transparent (UserError: unreadable)."""
    image = small_picture(images.read(path), side)
    code = base64.b64encode(jpeg(image, QUALITY)).decode("ascii")
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
    )


def ranks(cards: Sequence[Card], axes: Sequence[Axis]) -> dict[str, list[int]]:
    """Return what can be sorted by -> the place of each card: lowest first, unknown values last."""
    names = (name for card in cards for name in card.run.losses)
    kinds = dict.fromkeys(name.partition("/")[0] for name in names)
    columns = {f"{kind} loss": [_sum(card, kind) for card in cards] for kind in kinds}
    seconds = [card.run.record.seconds for card in cards]
    columns["time"] = [math.inf if one is None else one for one in seconds]
    places = range(len(cards))
    columns |= {axis.key: [float(axis.position(place)) for place in places] for axis in axes}
    orders = {name: sorted(places, key=values.__getitem__) for name, values in columns.items()}
    return {name: [order.index(place) for place in places] for name, order in orders.items()}


def _sum(card: Card, kind: str) -> float:
    """Return the sum of a card's losses of one kind, such as "style"; infinity if it has none."""
    losses = [loss for name, loss in card.run.losses.items() if name.partition("/")[0] == kind]
    return sum(losses) if losses else math.inf


def draw_sheet(title: str, sections: Sequence[Section], cards: Sequence[Card]) -> Image.Image:
    """Return the sheet, 8-bit sRGB: the page's tables and lists with what was varied and losses."""
    pictures = [card.preview.thumbnail for card in cards if card.preview is not None]
    width = max((picture.width for picture in pictures), default=THUMBNAIL)
    height = max((picture.height for picture in pictures), default=THUMBNAIL)
    cell = (max(width, THUMBNAIL // 2), height)
    bands = [_title(title)]
    for section in sections:
        if section.heading:
            bands.append(_title(section.heading))
        bands += _table(section, cards, cell) if section.rows else _list(section, cards, cell)
    return ImageOps.expand(_stacked(bands), GAP, PAPER)


def _table(section: Section, cards: Sequence[Card], cell: tuple[int, int]) -> list[Image.Image]:
    corner = _text(f"{section.row_key} by {section.column_key}", HEADINGS)
    rows = [_row([corner, *(_text(value, cell[0]) for value in section.columns)])]
    for value, numbers in section.rows:
        blocks = [_block(None if n is None else cards[n], "", cell) for n in numbers]
        rows.append(_row([_text(value, HEADINGS), *blocks]))
    return rows


def _list(section: Section, cards: Sequence[Card], cell: tuple[int, int]) -> list[Image.Image]:
    blocks = [_block(cards[number], cards[number].label, cell) for number in section.loose]
    across = min(ACROSS, math.ceil(math.sqrt(1.5 * len(blocks)))) or 1
    return [_row(blocks[first : first + across]) for first in range(0, len(blocks), across)]


def _block(card: Card | None, label: str, cell: tuple[int, int]) -> Image.Image:
    """Return a picture with its caption, or an empty place."""
    picture = Image.new("RGB", cell, PAPER if card is None else EMPTY)
    words = label
    if card is not None:
        total = card.run.losses.get("total")
        words = " · ".join(filter(None, (label, "" if total is None else f"loss {total:.4g}")))
        if card.preview is None:
            ImageDraw.Draw(picture).text((GAP, GAP), "no picture", INK, _font())
        else:
            picture = card.preview.thumbnail
    text = _text(words, cell[0])
    block = Image.new("RGB", (cell[0], cell[1] + text.height), PAPER)
    block.paste(picture, (0, 0))
    block.paste(text, (0, picture.height))
    return block


def _row(blocks: Sequence[Image.Image]) -> Image.Image:
    turned = [block.transpose(Image.Transpose.TRANSPOSE) for block in blocks]
    return _stacked(turned).transpose(Image.Transpose.TRANSPOSE)


def _stacked(bands: Sequence[Image.Image]) -> Image.Image:
    width = max(band.width for band in bands)
    height = sum(band.height + GAP for band in bands) - GAP
    stacked = Image.new("RGB", (width, height), PAPER)
    top = 0
    for band in bands:
        stacked.paste(band, (0, top))
        top += band.height + GAP
    return stacked


def _title(text: str) -> Image.Image:
    return _text(text, min(LETTER * len(text), 4 * THUMBNAIL))


def _text(text: str, width: int) -> Image.Image:
    """Return words on as many lines as they need, the last one cut short if there are too many."""
    lines = textwrap.wrap(text, width // LETTER, max_lines=CAPTION, placeholder="…")
    image = Image.new("RGB", (width, LINE * max(len(lines), 1)), PAPER)
    draw = ImageDraw.Draw(image)
    for number, line in enumerate(lines):
        draw.text((0, number * LINE), line, INK, _font())
    return image


@cache
def _font() -> ImageFont.FreeTypeFont:
    """Return the font that comes with matplotlib: it knows more letters than Pillow's own."""
    path = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSansMono.ttf"
    return ImageFont.truetype(str(path), 13)
