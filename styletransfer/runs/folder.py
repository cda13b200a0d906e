"""Reads the folder of a run of `train`: its record run.json and Hydra's own files.

The files may be damaged or of another version. `read_run` then raises UserError.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from styletransfer.errors import UserError
from styletransfer.runs.record import CONTENT, OVERRIDES, PASTICHE, RECORD
from styletransfer.settings import each
from styletransfer.settings.presets import load_yaml

# Largest size in bytes of a run.json that is read, so that no stranger's file fills the memory.
LARGEST = 2**24


@dataclass(frozen=True)
class RunFolder:
    """A RunFolder holds what the file `run.json` says about a run."""

    folder: Path  # folder of the run, which holds run.json
    status: str  # running, stopped, gave up or finished; a "running" run may have been killed
    settings: dict[str, Any]  # key, such as "optimizer.name" -> value
    output: Path  # path of the pastiche, which may not exist yet
    seconds: float | None  # duration of the optimisation; None before the run has ended
    steps: int | None = None  # number of steps made; None before the run has ended
    steered: bool = False  # whether settings changed during the run; `settings` has the last ones
    # SHA-256 of the file `output` as the run wrote it; None before the run has written it.
    output_hash: str | None = None
    error: str | None = None  # why a run of the web page (studio) failed, in one line
    # For a film that the web page painted with `style_source`: the time in seconds of the frame
    # that the user should paint by hand next.
    to_paint: float | None = None

    @property
    def content(self) -> Path:
        """The path of the lossless content image, resized to the pastiche's size."""
        return self.folder / CONTENT

    @property
    def files(self) -> list[tuple[str, Path]]:
        """(key, path) of the run's pictures, and of every setting of type str: it may be a path."""
        pastiche = self.folder / PASTICHE
        named = [("content", self.content), ("pastiche", pastiche), ("output", self.output)]
        for key, value in self.settings.items():
            named += [(key, Path(name)) for name in each(value) if isinstance(name, str)]
        return named

    @property
    def typed(self) -> tuple[str, ...] | None:
        """The KEY=VALUE words of the run's command line, or None if they cannot be read."""
        overrides = hydra_value(self.folder, OVERRIDES)
        return tuple(map(str, overrides)) if isinstance(overrides, list) else None


def read_run(folder: Path) -> RunFolder:
    """Return the contents of run.json in `folder` (UserError if it is missing or damaged)."""
    path = folder / RECORD
    try:
        if path.stat().st_size > LARGEST:
            raise ValueError(RECORD)
        record = json.loads(path.read_text(encoding="utf-8"))

        def known(key: str, *kinds: type) -> Any:
            return value if isinstance(value := record.get(key), kinds) else None

        needed = known("status", str), known("config", dict), known("picture", str)
        if None in needed or "\0" in record["picture"]:
            raise ValueError(RECORD)
    except OSError as error:
        raise UserError(f"{folder} is not the folder of a run: it holds no {RECORD}") from error
    except (ValueError, AttributeError, RecursionError) as error:
        raise UserError(f"{path} is damaged; start afresh in another folder") from error
    return RunFolder(
        folder,
        status=record["status"],
        settings=record["config"],
        output=Path(record["picture"]),
        seconds=known("seconds", int, float),
        steps=known("steps", int),
        steered=record.get("steered") is True,
        output_hash=known("picture_sha256", str),
        error=known("error", str),
        to_paint=known("to_paint", int, float),
    )


def hydra_value(folder: Path, name: str, *keys: str) -> Any:
    """Return the value under the nested `keys` in Hydra's file `folder/name`; None on failure."""
    try:
        value: Any = OmegaConf.to_container(load_yaml(folder / name))
        for key in keys:
            value = value[key]
    except Exception:  # a damaged file may raise any error
        return None
    return value
