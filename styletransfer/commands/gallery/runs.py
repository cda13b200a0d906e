"""Finding the runs below a folder, and reading what each has left."""

import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from styletransfer.errors import UserError
from styletransfer.settings.schemas import GROUPS
from styletransfer.system.run_folder import METRICS, PASTICHE, RECORD, read_record

# Hydra's record of a run, and what it calls a run of `train`.
HYDRA, OVERRIDES, JOB = ".hydra/hydra.yaml", ".hydra/overrides.yaml", "train"


@dataclass(frozen=True)
class Step:
    """One line of a run's metrics.

    Attributes:
        step: its number, from 1.
        scale: of the picture, from 1.
        losses: name -> weighted loss, with "total"; without what was not finite.
    """

    step: int
    scale: int
    losses: Mapping[str, float]


@dataclass(frozen=True)
class Run:
    """One run of `train`.

    Attributes:
        name: its folder, as seen from the one that was asked for.
        status: running, stopped, gave up or finished.
        settings: key -> value, such as "optimizer.name".
        choices: group -> the file that was chosen, such as "experiment" -> "bold"; empty if Hydra
            has kept no record.
        typed: KEY=VALUE of its command line, as Hydra has recorded them; None if it has not.
        seconds: of optimisation, None if the run has not come to an end.
        picture: its pastiche, None if there is none.
        steps: in their order.
    """

    name: str
    status: str
    settings: Mapping[str, Any]
    choices: Mapping[str, Any]
    typed: tuple[str, ...] | None
    seconds: float | None
    picture: Path | None
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Unreadable:
    """The folder of a run that cannot be shown: its name, and why."""

    name: str
    reason: str


def find_runs(folders: list[Path]) -> tuple[list[Run], list[Unreadable]]:
    """Return the runs in and below folders, in the order of their names, numbers as numbers.

    Raises:
        UserError: one of them is no folder, or there is no run at all.
    """
    runs: list[Run] = []
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
                unreadable.append(Unreadable(name, str(error)))
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
    return _recorded(place / HYDRA, "hydra", "job", "name") in (JOB, None)


def _read(place: Path, name: str) -> Run:
    if not (place / RECORD).exists():
        raise UserError(f"it ended before its first step, and left no {RECORD}")
    record = read_record(place)
    seconds = record.get("seconds")
    choices = _recorded(place / HYDRA, "hydra", "runtime", "choices") or {}
    typed = _recorded(place / OVERRIDES)
    pictures = [place / PASTICHE, Path(record["picture"])]
    return Run(
        name=name,
        status=record["status"],
        settings=record["config"],
        choices={group: choices[group] for group in GROUPS if group in choices},
        typed=tuple(map(str, typed)) if isinstance(typed, list) else None,
        seconds=float(seconds) if isinstance(seconds, int | float) else None,
        picture=next((path for path in pictures if path.is_file()), None),
        steps=tuple(_steps(place / METRICS)),
    )


def _recorded(path: Path, *keys: str) -> Any:
    """Return what a file of Hydra's holds, or what is under keys; None if it cannot be had."""
    try:
        found: Any = OmegaConf.to_container(OmegaConf.load(path))
        for key in keys:
            found = found[key]
    except Exception:  # a damaged file raises nearly anything
        return None
    return found


def _steps(path: Path) -> Iterator[Step]:
    """Yield the steps that can be read; a killed run leaves half a line."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        with suppress(ValueError, TypeError, KeyError, AttributeError):
            values = json.loads(line)
            step, scale = int(values.pop("step")), int(values.pop("scale"))
            del values["width"], values["height"]
            losses = {
                str(name): float(value)
                for name, value in values.items()
                if isinstance(value, int | float) and math.isfinite(value)
            }
            yield Step(step, scale, losses)
