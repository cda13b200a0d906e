"""In which keys runs differ, and which of these explain the others."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from styletransfer.commands.gallery.runs import Run
from styletransfer.config import TrainConfig
from styletransfer.runs.folder import FREE_KEYS
from styletransfer.settings.schemas import GROUPS, path_keys


@dataclass(frozen=True)
class Axis:
    """A key that differs between runs.

    Attributes:
        key: such as "objective.content_weight", or a group such as "experiment".
        values: one for each run, as shown.
        order: the values that occur, each once: numbers by size, else as the runs have them.
    """

    key: str
    values: tuple[str, ...]
    order: tuple[str, ...]

    def position(self, run: int) -> int:
        """Return where the value of a run, by its number, stands in the order."""
        return self.order.index(self.values[run])


def differing(runs: Sequence[Run]) -> list[Axis]:
    """Return the groups, then the keys, in which runs differ, without those that change no pixel.

    Groups only where Hydra has kept a record of every run.
    """
    columns: dict[str, list[Any]] = {}
    if all(run.choices for run in runs):
        columns |= {group: [run.choices.get(group) for run in runs] for group in GROUPS}
    known = dict.fromkeys(key for run in runs for key in run.settings if key not in FREE_KEYS)
    columns |= {key: [run.settings.get(key) for run in runs] for key in known}
    axes = (_axis(key, values) for key, values in columns.items())
    return [axis for axis in axes if len(axis.order) > 1]


def main_axes(runs: Sequence[Run], axes: Sequence[Axis]) -> list[Axis]:
    """Return what was varied: the keys that were typed, then those that they do not explain.

    A preset changes many keys at once; it alone is the axis then, as each of its values leads to
    one value of theirs.
    """
    typed = list(
        dict.fromkeys(
            word.lstrip("+").partition("=")[0] for run in runs for word in run.typed or ()
        )
    )
    kept = sorted((axis for axis in axes if axis.key in typed), key=lambda a: typed.index(a.key))
    for axis in axes:
        if axis not in kept and not any(_explains(one, axis) for one in kept):
            kept.append(axis)
    return kept


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
        order.sort(key=float)
    return Axis(key, tuple(texts), tuple(order))


def _without_folder(value: Any) -> Any:
    """Return the names of files without their folders, and what is no file name as it is."""
    if isinstance(value, list):
        return [_without_folder(each) for each in value]
    return os.path.basename(value) or value if isinstance(value, str) else value


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return value if isinstance(value, str) else json.dumps(value)
