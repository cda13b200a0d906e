"""Finding the runs below a folder, and reading what each has left."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from styletransfer.errors import UserError
from styletransfer.runs.folder import (
    HYDRA,
    RECORD,
    Step,
    read_error,
    read_run,
    read_steps,
    recorded,
)
from styletransfer.settings.schemas import GROUPS

# Characters of a name, a value or a reason that are shown.
LONGEST = 300


@dataclass(frozen=True)
class FoundRun:
    """One run of `train`."""

    name: str  # its folder, as seen from the one that was asked for
    status: str  # running, stopped, gave up or finished
    settings: Mapping[str, Any]  # key -> value, such as "optimizer.name"
    choices: Mapping[str, Any]  # "experiment" -> "bold"; empty without Hydra's record
    typed: tuple[str, ...] | None  # KEY=VALUE of its command line; None without Hydra's record
    seconds: float | None  # of optimisation, None if the run has not come to an end
    picture: Path | None  # its pastiche, None if there is none
    steps: tuple[Step, ...]  # in their order
    files: Sequence[tuple[str, Path]] = ()  # that it was made of, and has made


@dataclass(frozen=True)
class Unreadable:
    """The folder of a run that cannot be shown: its name, and why."""

    name: str
    reason: str


def shown(text: str) -> str:
    """Return text as a page can show it: on one line, not too long, and made of characters."""
    short = text if len(text) <= LONGEST else text[:LONGEST] + "…"
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in short)


def find_runs(folders: list[Path]) -> tuple[list[FoundRun], list[Unreadable]]:
    """Return the runs in and below folders, numbers in names in order (UserError: no run)."""
    runs: list[FoundRun] = []
    unreadable: list[Unreadable] = []
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
                unreadable.append(Unreadable(shown(name), shown(str(error))))
    if not seen:
        named = ", ".join(map(str, folders))
        raise UserError(f"there is no run of train in {named}; name a sweep's folder, or a run's")
    return runs, unreadable


def _places(folder: Path) -> Iterator[Path]:
    """Yield the folders of runs; hidden ones, and submitit's such as %j, hold none."""
    for place, inner, files in os.walk(folder):
        if RECORD in files or (".hydra" in inner and _began_training(Path(place))):
            yield Path(place)
        inner[:] = sorted((name for name in inner if name[0] not in ".%"), key=_natural)


def _natural(name: str) -> list[str | int]:
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def _began_training(place: Path) -> bool:
    """Tell whether Hydra has started a run of `train` here, or may have."""
    return recorded(place, HYDRA, "hydra", "job", "name") in ("train", None)


def _read(place: Path, name: str) -> FoundRun:
    if not (place / RECORD).exists():
        reason = read_error(place)
        raise UserError(reason or f"it ended before its first step, and left no {RECORD}")
    run = read_run(place)
    choices = recorded(place, HYDRA, "hydra", "runtime", "choices") or {}
    return FoundRun(
        name=shown(name),
        status=shown(run.status),
        settings=run.settings,
        choices={group: choices[group] for group in GROUPS if group in choices},
        typed=run.typed,
        seconds=run.seconds,
        picture=next((path for path in (run.pastiche, run.output) if os.path.isfile(path)), None),
        steps=tuple(read_steps(place)),
        files=run.files,
    )
