"""What is shown of one run: its picture, its values, its losses, its command."""

from collections.abc import Sequence
from dataclasses import dataclass

from styletransfer.commands.gallery.axes import Axis
from styletransfer.commands.gallery.curve import Curve, lay_out_curve
from styletransfer.commands.gallery.preview import Preview, make_preview, preview_side
from styletransfer.commands.gallery.runs import Run
from styletransfer.errors import UserError
from styletransfer.settings.command_line import command


@dataclass(frozen=True)
class Card:
    """One run, ready to be shown.

    Attributes:
        run: what it has left.
        preview: its picture, None if there is none to show.
        missing: why there is none; "" if there is.
        values: key -> value of what was varied.
        others: key -> value of what differs along with it.
        losses: name -> weighted loss at the last step, with "total"; empty if none is known.
        curve: over its steps, None if there is nothing to draw.
        command: to copy; "" if none was recorded.
    """

    run: Run
    preview: Preview | None
    missing: str
    values: dict[str, str]
    others: dict[str, str]
    losses: dict[str, float]
    curve: Curve | None
    command: str

    @property
    def label(self) -> str:
        """Its values, or its name where nothing was varied."""
        named = [f"{key} {value}" for key, value in self.values.items()]
        return ", ".join(named) or self.run.name


def make_cards(runs: Sequence[Run], main: Sequence[Axis], every: Sequence[Axis]) -> list[Card]:
    """Return a card for each run.

    Args:
        runs: in their order.
        main: the axes that were varied.
        every: all that differ.
    """
    side = preview_side(len(runs))
    along = [axis for axis in every if axis not in main]
    return [
        _card(
            run,
            side,
            {axis.key: axis.values[number] for axis in main},
            {axis.key: axis.values[number] for axis in along},
        )
        for number, run in enumerate(runs)
    ]


def _card(run: Run, side: int, values: dict[str, str], others: dict[str, str]) -> Card:
    preview, missing = None, ""
    if run.picture is None:
        missing = f"no picture: the run is {run.status}"
    else:
        try:
            preview = make_preview(run.picture, side)
        except UserError as error:
            missing = str(error)
    return Card(
        run=run,
        preview=preview,
        missing=missing,
        values=values,
        others=others,
        losses=dict(run.steps[-1].losses) if run.steps else {},
        curve=lay_out_curve(run.steps),
        command=command(run.typed),
    )


def ranks(cards: Sequence[Card], axes: Sequence[Axis]) -> dict[str, list[int]]:
    """Return what can be sorted by -> the place of each card, the lowest value first.

    Cards without a value come last; equal ones keep their order.
    """
    losses = dict.fromkeys(name for card in cards for name in card.losses)
    kinds = dict.fromkeys(name.partition("/")[0] for name in losses)
    columns = {f"{kind} loss": [_sum(card, kind) for card in cards] for kind in kinds}
    columns["time"] = [card.run.seconds for card in cards]
    columns |= {
        axis.key: [float(axis.position(number)) for number in range(len(cards))] for axis in axes
    }
    return {name: _places(values) for name, values in columns.items()}


def _sum(card: Card, kind: str) -> float | None:
    """Return the sum of a card's losses of one kind, such as "style", None if it has none."""
    found = [value for name, value in card.losses.items() if name.partition("/")[0] == kind]
    return sum(found) if found else None


def _places(values: Sequence[float | None]) -> list[int]:
    def key(number: int) -> tuple[bool, float]:
        value = values[number]
        return value is None, value or 0.0

    places = [0] * len(values)
    for place, number in enumerate(sorted(range(len(values)), key=key)):
        places[number] = place
    return places
