"""The folder of a run of `train`: the names in it, what is on record there, and how it is read.

What is read may be damaged or of another version: a run that cannot be read is a UserError, and
whoever shows many shows that in its place.
"""

import json
import logging
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from styletransfer.errors import UserError
from styletransfer.settings import each
from styletransfer.system.files import atomic

logger = logging.getLogger(__name__)

RECORD = "run.json"
PASTICHE = "pastiche.png"
# Not content.png, which may well be the name of somebody's photograph.
CONTENT = "content_resized.png"
METRICS = "metrics.jsonl"
CHECKPOINT = "checkpoint.pt"
# Says in the folder of a sweep's job why it failed.
ERROR = "error.txt"
# Hydra's record of what it was asked for, and how it understood that.
HYDRA, OVERRIDES = ".hydra/hydra.yaml", ".hydra/overrides.yaml"
# Keys that change no pixel, and may be given anew when a run goes on.
FREE_KEYS = ("output", "snapshot_every", "checkpoint_every", "stop_after", "resume", "dry_run")
# More steps than any run makes, and no number that a chart or a page could not take.
MOST_STEPS = 2**53


@dataclass(frozen=True)
class RunFolder:
    """What a run has left, but for its pictures and its steps."""

    folder: Path  # of the run
    status: str  # running, stopped, gave up or finished; what is running may have been killed
    settings: dict[str, Any]  # key -> value, such as "optimizer.name"
    output: Path  # where its pastiche is or will be
    seconds: float | None  # of optimisation, None if the run has not come to an end
    steps: int | None = None  # that were made by then

    @property
    def pastiche(self) -> Path:
        """Its pastiche without loss, if it has come to an end."""
        return self.folder / PASTICHE

    @property
    def content(self) -> Path:
        """The content at the pastiche's size, if it has come to an end."""
        return self.folder / CONTENT

    @property
    def files(self) -> list[tuple[str, Path]]:
        """The files that it was made of, by their keys, and those that it has made."""
        named = [("content", self.content), ("pastiche", self.pastiche), ("output", self.output)]
        for key, value in self.settings.items():
            named += [(key, Path(name)) for name in each(value) if isinstance(name, str)]
        return named

    @property
    def typed(self) -> tuple[str, ...] | None:
        """KEY=VALUE of its command line; None if Hydra has kept no record."""
        overrides = recorded(self.folder, OVERRIDES)
        return tuple(map(str, overrides)) if isinstance(overrides, list) else None


@dataclass(frozen=True)
class Step:
    """One line of a run's metrics: step and scale from 1, and name -> weighted loss.

    The losses have "total", and lack what was not finite.
    """

    step: int
    scale: int
    losses: Mapping[str, float]


def read_run(folder: Path) -> RunFolder:
    """Return what `write_record` wrote (UserError: no run's folder, or it is damaged)."""
    path = folder / RECORD
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        seconds = record.get("seconds")
        for key, kind in (("config", dict), ("status", str), ("picture", str)):
            if not isinstance(record[key], kind):
                raise TypeError(key)
        if "\0" in record["picture"]:
            raise ValueError("picture")
    except OSError as error:
        raise UserError(f"{folder} is not the folder of a run: it holds no {RECORD}") from error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"{path} is damaged; start afresh in another folder") from error
    seconds, steps = float(seconds) if _is_finite(seconds) else None, record.get("steps")
    path, steps = Path(record["picture"]), steps if type(steps) is int else None
    return RunFolder(folder, record["status"], record["config"], path, seconds, steps)


def write_record(
    folder: Path, recipe: dict[str, Any], status: str, picture: Path, **known: float | None
) -> None:
    """Write `run.json`, see `RunFolder`; where that cannot be, say so and do without."""
    record = {"status": status, "picture": os.path.abspath(picture), **known} | recipe
    try:
        with atomic(folder / RECORD) as temporary:
            temporary.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    except UserError as error:
        logger.warning("%s; going on without", error)


def read_steps(folder: Path) -> Iterator[Step]:
    """Yield the steps that can be read; a killed run leaves half a line."""
    try:
        lines = (folder / METRICS).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        with suppress(ValueError, LookupError, TypeError, AttributeError, RecursionError):
            values = json.loads(line)
            step, scale = values.pop("step"), values.pop("scale")
            del values["width"], values["height"]
            losses = {name: float(value) for name, value in values.items() if _is_finite(value)}
            if all(type(n) is int and 0 < n < MOST_STEPS for n in (step, scale)):
                yield Step(step, scale, losses)


def read_error(folder: Path) -> str | None:
    """Return in one line why a job of a sweep failed, None if its folder does not say."""
    try:
        text = (folder / ERROR).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return next((line for line in reversed(text.splitlines()) if line.strip()), None)


def recorded(folder: Path, name: str, *keys: str) -> Any:
    """Return what a file of Hydra's holds, or what is under keys; None if it cannot be had."""
    try:
        value: Any = OmegaConf.to_container(OmegaConf.load(folder / name))
        for key in keys:
            value = value[key]
    except Exception:  # a damaged file raises nearly anything
        return None
    return value


def _is_finite(value: Any) -> bool:
    """Tell whether a value is a number that a float can hold."""
    try:
        return isinstance(value, int | float) and math.isfinite(value)
    except OverflowError:
        return False
