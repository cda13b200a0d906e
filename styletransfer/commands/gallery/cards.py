"""What the page shows: each run, or two pictures at a time without their names."""

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from styletransfer.commands.gallery.found import Axis, FoundRun, shown
from styletransfer.errors import UserError
from styletransfer.pictures import images
from styletransfer.pictures.convert import jpeg, small_picture

# Longer side in pixels of the previews: the fewer the larger.
LARGEST, SMALLEST = 960, 320
MANY = 24  # runs whose previews have their full side; beyond, the page's size grows no more
QUALITY = 85


@dataclass(frozen=True)
class Preview:
    """A picture, made small."""

    uri: str  # a JPEG as a data URI, for the page
    size: tuple[int, int]  # width and height of it in pixels


@dataclass(frozen=True)
class Card:
    """One run, ready to be shown."""

    run: FoundRun  # what it has left
    preview: Preview | None  # its picture, None if there is none to show
    missing: str  # why there is none; "" if there is
    values: dict[str, str]  # key -> value of what was varied
    others: dict[str, str]  # key -> value of what differs along with it

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
        )
        cards.append(card)
    return cards


def make_preview(path: Path, side: int) -> Preview:
    """Return a picture at most `side` long, white where transparent (UserError: unreadable)."""
    image = small_picture(images.read(path), side)
    code = base64.b64encode(jpeg(image, QUALITY)).decode("ascii")
    return Preview(f"data:image/jpeg;base64,{code}", image.size)


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


def make_pairs(
    runs: Sequence[FoundRun], varied: Sequence[Axis], key: str
) -> list[dict[str, object]]:
    """Return the pairs of runs that differ in `key` alone, to see which setting people prefer.

    Each has the `names` of both values and their `pictures`, data URIs (UserError: there is none,
    or a picture that cannot be read).
    """
    judged = next((axis for axis in varied if axis.key == key), None)
    if judged is None:
        names = ", ".join(axis.key for axis in varied) or "nothing"
        raise UserError(f"blind={key} does not differ between these runs; {names} does")
    others = [axis for axis in varied if axis is not judged]
    found = [
        pair
        for pair in combinations([n for n, run in enumerate(runs) if run.picture], 2)
        if len({judged.values[n] for n in pair}) == 2
        and not any(len({axis.values[n] for n in pair}) == 2 for axis in others)
    ]
    if not found:
        raise UserError(f"no two pictures differ in {key} alone; sweep it: {key}=ONE,OTHER")
    seen = sorted({n for pair in found for n in pair})
    made = {n: make_preview(path, LARGEST).uri for n in seen if (path := runs[n].picture)}
    return [
        {"names": [judged.values[n] for n in pair], "pictures": [made[n] for n in pair]}
        for pair in found
    ]
