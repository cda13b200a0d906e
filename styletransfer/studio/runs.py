"""The runs on disk: the studio's own, and those of folders that the person has named."""

import hashlib
import json
import math
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
    HYDRA,
    METRICS,
    RECORD,
    RunFolder,
    read_run,
    recorded,
)
from styletransfer.studio.access import RefusedError
from styletransfer.studio.form import changed_settings, command_of, shown_values
from styletransfer.studio.pictures import PictureShelf
from styletransfer.system.files import atomic, is_locked

# MOST: number of runs that the page shows, the newest ones. NOTE and FILM: files in a run's folder
# with the user's name for the run, and with the painted film.
MOST, NOTE, FILM = 300, ".studio.json", "painted.mp4"
# Largest length of a run's name in characters.
LONGEST_NAME = 120
# Number of bytes at the end of a run's metrics that are read for the losses of its last step.
LONGEST_LINE = 2**14


@dataclass(frozen=True)
class StoredRun:
    """A run on disk, by an id that the server has made."""

    id: str
    record: RunFolder
    is_own: bool  # whether it lies in the studio's own folder
    shown: dict[str, Any]  # the plain values that the page receives


class StoredRuns:
    """Finds runs, of the studio's own folder and of others, by ids; nothing else leads to one."""

    def __init__(self, root: Path, others: Sequence[Path], shelf: PictureShelf) -> None:
        self._root, self._others, self._shelf = root, others, shelf
        self._read: dict[str, tuple[int, StoredRun]] = {}  # id -> (time of the record in ns, run)

    def all(self) -> list[StoredRun]:
        """Return the newest runs, the latest first; damaged ones are left out."""
        places = []
        for folder, is_own in self._folders():
            with suppress(OSError):
                places.append(((folder / RECORD).stat().st_mtime_ns, folder, is_own))
        places.sort(key=lambda place: place[0], reverse=True)
        return [run for place in places[:MOST] if (run := self._look(*place)) is not None]

    def find(self, id: str) -> StoredRun:
        """Return a run; RefusedError if there is none of that id."""
        if id not in self._read:
            self.all()
        with suppress(KeyError, OSError):
            _, run = self._read[id]
            folder = run.record.folder
            written = (folder / RECORD).stat().st_mtime_ns
            if current := self._look(written, folder, run.is_own):
                return current
        raise RefusedError("there is no such run", 404)

    def _folders(self) -> Iterator[tuple[Path, bool]]:
        if self._root.is_dir():
            yield from ((path, True) for path in self._root.iterdir() if (path / RECORD).is_file())
        for other in self._others:
            for place, inner, files in os.walk(other):
                inner[:] = sorted(name for name in inner if name[0] not in ".%")
                if RECORD in files and Path(place).parent.resolve() != self._root.resolve():
                    yield Path(place), False

    def _look(self, written: int, folder: Path, is_own: bool) -> StoredRun | None:
        """Return a run, read anew where its record has changed; None if it cannot be read."""
        id = folder.name if is_own else hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
        if self._read.get(id, (None,))[0] != written:
            try:
                record = read_run(folder)
                run = StoredRun(id, record, is_own, self._shown(id, record, written))
            except (UserError, OSError, KeyError, TypeError, ValueError):
                return None
            self._read[id] = (written, run)
        run = self._read[id][1]
        now = _noted(folder)
        if run.shown["status"] == "running" and not is_locked(folder):
            now["status"] = "stopped"
        return replace(run, shown=run.shown | now)

    def _shown(self, id: str, record: RunFolder, written: int) -> dict[str, Any]:
        words, changes = record.typed, record.settings.get("changes", [])
        is_film = record.output.name == FILM
        # Hydra's file is long to read, and only films need it for the name of their command.
        name = recorded(record.folder, HYDRA, "hydra", "job", "name") if is_film else "train"
        settings, width, height = dict(record.settings), None, None
        for change in changes:
            settings |= change["set"]
        stopped = record.steps if record.status == "stopped" and not is_film else None
        # A damaged file's header may state any size.
        broken = OSError, ValueError, Image.DecompressionBombError
        with suppress(*broken), Image.open(record.content) as image:
            width, height = image.size
        return {
            "id": id,
            "is_own": id == record.folder.name,
            "status": record.status,
            "settings": changed_settings(settings, self._shelf),  # after all changes
            "changes": [(one["after"], shown_values(one["set"], self._shelf)) for one in changes],
            "command": "" if words is None else command_of(words, changes, stopped, name),
            "is_film": is_film,
            "step": record.steps,
            "seconds": record.seconds,
            "loss": _last_loss(record.folder),
            "written": written / 1e9,
            "width": width,
            "height": height,
            "has_checkpoint": (record.folder / CHECKPOINT).exists(),
        }


def _last_loss(folder: Path) -> float | None:
    """Return the total loss of a run's last step; None if there is none."""
    with suppress(OSError, ValueError, LookupError, TypeError):
        with (folder / METRICS).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - LONGEST_LINE))
            loss = json.loads(file.read().splitlines()[-1])["total"]
        return float(loss) if math.isfinite(loss) else None
    return None


def note(folder: Path, name: Any, starred: Any) -> None:
    """Keep how a person calls a run, "" for by its pictures, and whether it has a star."""
    if not isinstance(name, str) or len(name) > LONGEST_NAME or not name.isprintable():
        raise RefusedError(f"a name must be a text of at most {LONGEST_NAME} characters")
    with atomic(folder / NOTE) as temporary:
        said = {"name": name.strip(), "starred": bool(starred)}
        temporary.write_text(json.dumps(said), encoding="utf-8")


def _noted(folder: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError, LookupError, TypeError):
        said = json.loads((folder / NOTE).read_text(encoding="utf-8"))
        return {"name": str(said["name"])[:LONGEST_NAME], "starred": bool(said["starred"])}
    return {"name": "", "starred": False}
