"""The runs below a folder: what each has left, in which keys they differ, and where each stands."""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from styletransfer.errors import UserError
from styletransfer.runs import folder as left
from styletransfer.settings import TrainConfig, each
from styletransfer.settings.schemas import GROUPS, path_keys

# Characters of a name, a value or a reason that are shown.
LONGEST = 300


@dataclass(frozen=True)
class FoundRun:
    """One run of `train`."""

    name: str  # its folder, as seen from the one that was asked for
    record: left.RunFolder
    choices: Mapping[str, Any]  # "experiment" -> "bold"; empty without Hydra's record
    typed: tuple[str, ...] | None  # KEY=VALUE of its command line; None without Hydra's record
    picture: Path | None  # its pastiche, None if there is none
    losses: Mapping[str, float]  # weighted, at the last step, with "total"; empty if unknown


def shown(text: str) -> str:
    """Return text as a page can show it: on one line, not too long, and made of characters."""
    short = text if len(text) <= LONGEST else text[:LONGEST] + "…"
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in short)


def find_runs(folders: list[Path]) -> tuple[list[FoundRun], list[tuple[str, str]]]:
    """Return the runs in and below folders, numbers in names in order (UserError: no run).

    Of those that cannot be shown, the second list says the name, and why.
    """
    runs: list[FoundRun] = []
    unreadable: list[tuple[str, str]] = []
    seen = set()
    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"{folder} is no folder; name that of a sweep, or of a run of train")
        for place in _places(folder):
            if (real := os.path.realpath(place)) in seen:
                continue
            seen.add(real)
            # One folder is the page's title; of several each says where a run is from.
            name = os.path.relpath(place, folder) if len(folders) == 1 else str(place)
            try:
                runs.append(_read(place, folder.resolve().name if name == "." else name))
            except UserError as error:
                unreadable.append((shown(name), shown(str(error))))
    if not seen:
        named = ", ".join(map(str, folders))
        raise UserError(f"there is no run of train in {named}; name a sweep's folder, or a run's")
    return runs, unreadable


def _places(folder: Path) -> Iterator[Path]:
    """Yield the folders of runs; hidden ones, and submitit's such as %j, hold none."""
    for place, inner, files in os.walk(folder):
        # A run that has left nothing else yet, unless it is known to be of another command.
        began = ".hydra" in inner and left.recorded(Path(place), left.HYDRA, "hydra", "job", "name")
        if left.RECORD in files or began in ("train", None):
            yield Path(place)
        inner[:] = sorted((name for name in inner if name[0] not in ".%"), key=_natural)


def _natural(name: str) -> list[str | int]:
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def _read(place: Path, name: str) -> FoundRun:
    if not (place / left.RECORD).exists():
        reason = left.read_error(place)
        raise UserError(reason or f"it ended before its first step, and left no {left.RECORD}")
    run = left.read_run(place)
    choices = left.recorded(place, left.HYDRA, "hydra", "runtime", "choices") or {}
    losses: Mapping[str, float] = {}
    for step in left.read_steps(place):
        losses = step.losses
    return FoundRun(
        name=shown(name),
        record=run,
        choices={group: choices[group] for group in GROUPS if group in choices},
        typed=run.typed,
        picture=next((path for path in (run.pastiche, run.output) if os.path.isfile(path)), None),
        losses=losses,
    )


@dataclass(frozen=True)
class Axis:
    """A key that differs between runs."""

    key: str  # such as "objective.content_weight", or a group such as "experiment"
    values: tuple[str, ...]  # one for each run, as shown
    order: tuple[str, ...]  # each value once: numbers by size, else as the runs have them

    def position(self, run: int) -> int:
        """Return where the value of a run, by its number, stands in the order."""
        return self.order.index(self.values[run])


@dataclass(frozen=True)
class Section:
    """Runs under one heading, by their numbers: a table, or a list."""

    heading: str  # what they have in common, such as "size 512, seed 3"; "" if they are all
    row_key: str = ""  # the key that changes from row to row; "" without a table
    column_key: str = ""  # the key that changes from column to column
    columns: tuple[str, ...] = ()  # its values
    # the value, and the run of each column, None where there is none
    rows: tuple[tuple[str, tuple[int | None, ...]], ...] = ()
    loose: tuple[int, ...] = ()  # runs in a list, where there is no table


def differing(runs: Sequence[FoundRun]) -> list[Axis]:
    """Return the groups (where Hydra recorded every run) and keys that differ and change pixels."""
    columns: dict[str, list[Any]] = {}
    if all(run.choices for run in runs):
        columns |= {group: [run.choices.get(group) for run in runs] for group in GROUPS}
    settings = [run.record.settings for run in runs]
    known = dict.fromkeys(key for one in settings for key in one if key not in left.FREE_KEYS)
    columns |= {key: [one.get(key) for one in settings] for key in known}
    axes = (_axis(key, values) for key, values in columns.items())
    return [axis for axis in axes if len(axis.order) > 1]


def main_axes(runs: Sequence[FoundRun], axes: Sequence[Axis]) -> list[Axis]:
    """Return what was varied: the keys that were typed, then those that they do not explain.

    A preset changes many keys at once; it alone is the axis then, as each of its values leads to
    one value of theirs.
    """
    words = (word for run in runs for word in run.typed or ())
    typed = list(dict.fromkeys(word.lstrip("+").partition("=")[0] for word in words))
    varied = sorted((axis for axis in axes if axis.key in typed), key=lambda a: typed.index(a.key))
    for axis in axes:
        if axis not in varied and not any(_explains(one, axis) for one in varied):
            varied.append(axis)
    return varied


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


def _explains(one: Axis, other: Axis) -> bool:
    """Tell whether each value of one axis comes with a single value of the other."""
    return len(set(zip(one.values, other.values, strict=True))) == len(one.order)


def _axis(key: str, values: list[Any]) -> Axis:
    texts = [_text(value) for value in values]
    if key in path_keys(TrainConfig):
        short = [_text(_without_folder(value)) for value in values]
        texts = short if len({*short}) == len({*texts}) else texts
    order = list(dict.fromkeys(texts))
    if all(type(value) in (int, float) for value in values):
        order.sort(key=dict(zip(texts, values, strict=True)).__getitem__)
    return Axis(key, tuple(texts), tuple(order))


def _without_folder(value: Any) -> Any:
    """Return the names of files without their folders, and what is no file name as it is."""
    names = [os.path.basename(one) or one if isinstance(one, str) else one for one in each(value)]
    return names if isinstance(value, list) else next(iter(names), None)


def _text(value: Any) -> str:
    try:
        words = [one if isinstance(one, str) else json.dumps(one) for one in each(value)]
    except RecursionError:  # nothing that a run has written
        words = ["…"]
    return shown(", ".join(words)) if value is not None else "null"


def _table(heading: str, down: Axis, across: Axis, runs: Sequence[int]) -> Section | None:
    """Return a table, or None if two runs share a cell, or half of the cells would be empty."""
    cells = {(down.values[run], across.values[run]): run for run in runs}
    columns = tuple(value for value in across.order if any(value == key[1] for key in cells))
    rows = [value for value in down.order if any(value == key[0] for key in cells)]
    if len(cells) < len(runs) or 2 * len(cells) <= len(rows) * len(columns):
        return None
    filled = tuple((row, tuple(cells.get((row, column)) for column in columns)) for row in rows)
    return Section(heading, down.key, across.key, columns, filled)
