"""Where each run stands: in a table over two keys, in groups, or one after another."""

from collections.abc import Sequence
from dataclasses import dataclass

from styletransfer.commands.gallery.axes import Axis


@dataclass(frozen=True)
class Section:
    """Runs under one heading, by their numbers: a table, or a list.

    Attributes:
        heading: what they have in common, such as "size 512, seed 3"; "" if they are all.
        row_key: the key that changes from row to row; "" without a table.
        column_key: the key that changes from column to column.
        columns: its values.
        rows: the value, and the run of each column, None where there is none.
        loose: runs in a list, where there is no table.
    """

    heading: str
    row_key: str = ""
    column_key: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, tuple[int | None, ...]], ...] = ()
    loose: tuple[int, ...] = ()


def lay_out(axes: Sequence[Axis], count: int) -> list[Section]:
    """Return the sections of `count` runs that differ in `axes`.

    Two axes make a table; the one with more values goes down. Of more axes, the two with the most
    values make a table for each combination of the others. Where tables would be mostly holes, and
    with fewer axes, the runs stand in a list.
    """
    inner = sorted(axes, key=lambda axis: -len(axis.order))[:2]
    outer = [axis for axis in axes if axis not in inner]
    runs = sorted(range(count), key=lambda run: [axis.position(run) for axis in axes])
    if len(inner) < 2:
        return [Section("", loose=tuple(runs))]
    groups: dict[tuple[int, ...], list[int]] = {}
    for run in runs:
        groups.setdefault(tuple(axis.position(run) for axis in outer), []).append(run)
    sections = []
    for position, members in sorted(groups.items()):
        named = zip(outer, position, strict=True)
        heading = ", ".join(f"{axis.key} {axis.order[place]}" for axis, place in named)
        section = _table(heading, inner[0], inner[1], members)
        if section is None or len(members) == 1 < count:
            return [Section("", loose=tuple(runs))]
        sections.append(section)
    return sections


def _table(heading: str, down: Axis, across: Axis, runs: Sequence[int]) -> Section | None:
    """Return a table, or None if two runs share a cell, or half of the cells would be empty."""
    cells = {(down.values[run], across.values[run]): run for run in runs}
    columns = tuple(value for value in across.order if any(value == key[1] for key in cells))
    rows = [value for value in down.order if any(value == key[0] for key in cells)]
    if len(cells) < len(runs) or 2 * len(cells) <= len(rows) * len(columns):
        return None
    filled = tuple((row, tuple(cells.get((row, column)) for column in columns)) for row in rows)
    return Section(heading, down.key, across.key, columns, filled)
