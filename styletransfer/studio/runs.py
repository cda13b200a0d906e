"""The runs on disk: the studio's own, and those of folders that the person has named."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from PIL import Image

from styletransfer.errors import UserError
from styletransfer.runs.folder import (
    CHECKPOINT,
    CONTENT,
    PASTICHE,
    RECORD,
    read_run,
    read_steps,
)
from styletransfer.studio.asked import command_of
from styletransfer.studio.form import changed_settings
from styletransfer.studio.pictures import Pictures
from styletransfer.studio.refusal import RefusedError
from styletransfer.system.lock import is_locked

# Shown at most, the newest.
MOST = 300


@dataclass(frozen=True)
class Kept:
    """A run on disk.

    Attributes:
        id: made by the server.
        folder: of the run.
        own: whether it lies in the studio's own folder.
        typed: KEY=VALUE with which it began; None if that is not known.
        shown: what the page is told, but for its status where it is at work here.
    """

    id: str
    folder: Path
    own: bool
    typed: tuple[str, ...] | None
    shown: dict[str, Any]

    @property
    def picture(self) -> Path:
        """The pastiche, without loss."""
        return self.folder / PASTICHE

    @property
    def content(self) -> Path:
        """The content at its size."""
        return self.folder / CONTENT


class Runs:
    """Finds runs by their ids; nothing else leads to a folder.

    Args:
        root: the studio's own folder.
        others: more folders.
        pictures: to name those of a run.
    """

    def __init__(self, root: Path, others: Sequence[Path], pictures: Pictures) -> None:
        self._root, self._others, self._pictures = root, others, pictures
        self._read: dict[str, tuple[int, Kept]] = {}

    def all(self) -> list[Kept]:
        """Return the newest runs, the latest first; damaged ones are left out."""
        found = []
        for folder, own in self._folders():
            with suppress(OSError):
                found.append(((folder / RECORD).stat().st_mtime_ns, folder, own))
        found.sort(key=lambda each: each[0], reverse=True)
        return [kept for each in found[:MOST] if (kept := self._look(*each)) is not None]

    def find(self, id: str) -> Kept:
        """Return a run.

        Raises:
            RefusedError: there is none of that id.
        """
        if id not in self._read:
            self.all()
        if id in self._read:
            place = self._read[id][1]
            with suppress(OSError):
                stamp = (place.folder / RECORD).stat().st_mtime_ns
                if kept := self._look(stamp, place.folder, place.own):
                    return kept
        raise RefusedError("there is no such run", 404)

    def _folders(self) -> Iterator[tuple[Path, bool]]:
        if self._root.is_dir():
            yield from ((path, True) for path in self._root.iterdir() if (path / RECORD).is_file())
        for other in self._others:
            for place, inner, files in os.walk(other):
                inner[:] = sorted(name for name in inner if name[0] not in ".%")
                if RECORD in files and Path(place).parent.resolve() != self._root.resolve():
                    yield Path(place), False

    def _look(self, stamp: int, folder: Path, own: bool) -> Kept | None:
        """Return a run, read anew where its record has changed; None if it cannot be read."""
        id = folder.name if own else hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
        if id in self._read and self._read[id][0] == stamp:
            kept = self._read[id][1]
        else:
            try:
                kept = Kept(id, folder, own, *self._shown(id, folder))
            except (UserError, OSError, KeyError, TypeError, ValueError):
                return None
            self._read[id] = (stamp, kept)
        if kept.shown["status"] == "running" and not is_locked(folder):
            return replace(kept, shown=kept.shown | {"status": "stopped"})
        return kept

    def _shown(self, id: str, folder: Path) -> tuple[tuple[str, ...] | None, dict[str, Any]]:
        run = read_run(folder)
        asked = run.typed
        width = height = None
        with suppress(OSError), Image.open(folder / CONTENT) as image:
            width, height = image.size
        steps = losses(folder)
        return asked, {
            "id": id,
            "status": run.status,
            "settings": changed_settings(run.settings, self._pictures),
            "command": "" if asked is None else command_of(asked, run.settings.get("changes", [])),
            "seconds": run.seconds,
            "losses": steps[-1][1] if steps else {},
            "width": width,
            "height": height,
            "has_checkpoint": (folder / CHECKPOINT).exists(),
        }


def losses(folder: Path) -> list[tuple[int, dict[str, Any]]]:
    """Return the steps of a run, with losses and their sums where the total is finite."""
    return [
        (each.step, with_sums(dict(each.losses)) if "total" in each.losses else {})
        for each in read_steps(folder)
    ]


def as_columns(steps: Sequence[tuple[int, dict[str, Any]]]) -> dict[str, Any]:
    """Return losses by name, each a list with a value for each step, under "names"; and "steps"."""
    names = dict.fromkeys(name for _, values in steps for name in values)
    columns = {name: [values.get(name) for _, values in steps] for name in names}
    return {"steps": [step for step, _ in steps], "names": columns}


def with_sums(losses: dict[str, Any]) -> dict[str, Any]:
    """Return the losses of a step by layer, such as "style/relu1_1", with the sums of each kind."""
    sums: dict[str, Any] = {}
    for name, value in losses.items():
        kind, inner, _ = name.partition("/")
        if inner:
            before = sums.get(kind, 0.0)
            sums[kind] = None if value is None or before is None else before + value
    return sums | losses
