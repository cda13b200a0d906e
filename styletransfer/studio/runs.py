"""Finds and reads stored runs: a run paints one picture or film, into a folder of its own."""

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from PIL import Image

from styletransfer.errors import UserError
from styletransfer.runs.folder import RunFolder, read_run
from styletransfer.runs.record import (
    CHECKPOINT,
    CONTENT,
    CONTENT_REGIONS,
    HYDRA,
    METRICS,
    OVERRIDES,
    PASTICHE,
    RECORD,
    STYLE_REGIONS,
)
from styletransfer.settings.values import override
from styletransfer.studio.access import RefusedError
from styletransfer.studio.form import MOST_STYLES, changed_settings, command_name, command_of
from styletransfer.studio.pictures import PictureShelf
from styletransfer.studio.reader import copies_of
from styletransfer.system.files import write_atomic
from styletransfer.system.locks import LOCK, is_locked

MOST = 300  # number of newest runs that the page shows
FILM = "painted.mp4"  # name of the painted film in its folder
# Kind of a run -> name of its output file. If this is a TIFF, `train` also saves a PNG with 16 bits
# per sample.
OUTPUTS = {"picture": "pastiche.tiff", "sketch": "sketch.png", "film": FILM}
# File with the last preview of a run that failed before it saved a pastiche.
PREVIEW = "preview.jpg"
# Names of the files that runs write into their folder, except RECORD.
WRITTEN = (
    *(PASTICHE, CONTENT, CHECKPOINT, METRICS, "train.log", *OUTPUTS.values(), LOCK, PREVIEW),
    *("painted.styletransfer-partial.mp4", f".{FILM}.lock"),
    *(path.name for name in (PASTICHE, CONTENT, PREVIEW) for path in copies_of(Path(name))),
    *(HYDRA, OVERRIDES, ".hydra/config.yaml", CONTENT_REGIONS),
    *(f"{STYLE_REGIONS}/{number + 1}.png" for number in range(MOST_STYLES)),
)


@dataclass(frozen=True)
class StoredRun:
    """A StoredRun is a run that has a folder on the disk."""

    id: str  # name of its folder
    record: RunFolder  # the contents of its run.json
    shown: dict[str, Any]  # the plain values that the page receives
    typed: tuple[str, ...] | None  # KEY=VALUE words of its command; None if they are unknown

    def part(self, name: str) -> Path:
        """Return the path of a file of the run (RefusedError: there is none, or it is a link)."""
        path = self.record.folder / name
        if path.is_symlink() or not path.is_file():
            raise RefusedError("the run has no such part", 404)
        return path

    def delete(self) -> list[str]:
        """Delete the files that runs write; return the names of other files, which are kept.

        The folder is deleted if it is then empty. (UserError: it is a link, or a file cannot be
        deleted.)
        """
        folder, output = self.record.folder, self.record.output
        if folder.is_symlink():
            raise RefusedError(
                f"{folder} links to a folder elsewhere; remove the link by hand", 409
            )
        made = [path for name in WRITTEN if not (path := folder / name).parent.is_symlink()]
        made += folder.glob(f".{'[0-9a-f]' * 16}.tmp")
        made += [output] if output.parent == folder.absolute() else []
        try:
            for path in (*made, folder / RECORD):  # the record last: it keeps the run in the list
                path.unlink(missing_ok=True)
            for place in (folder / Path(HYDRA).parent, folder / STYLE_REGIONS, folder):
                with suppress(OSError):  # a folder with other files stays
                    place.rmdir()
            return sorted(path.name for path in folder.iterdir()) if folder.exists() else []
        except OSError as error:
            raise UserError(f"cannot delete {error.filename}: {error.strerror}") from error


class StoredRuns:
    """StoredRuns finds runs in the folder `root` by their ids, so that no request names a path."""

    def __init__(self, root: Path, shelf: PictureShelf) -> None:
        self._root, self._shelf = root, shelf
        self._read: dict[str, tuple[int, StoredRun]] = {}  # id -> (time of run.json in ns, run)

    def all(self) -> list[StoredRun]:
        """Return the newest runs, at most MOST, the latest first; leave damaged runs out."""
        folders = []
        for folder in self._root.iterdir() if self._root.is_dir() else ():
            with suppress(OSError):
                folders.append(((folder / RECORD).stat().st_mtime_ns, folder))
        newest = sorted(folders, reverse=True)[:MOST]
        return [run for written, folder in newest if (run := self._look(written, folder))]

    def find(self, id: str) -> StoredRun:
        """Return the run with this id (RefusedError: there is none)."""
        for run in self.all():
            if run.id == id:
                return run
        raise RefusedError("there is no such run", 404)

    def _look(self, written: int, folder: Path) -> StoredRun | None:
        """Return the run in a folder, or None if it cannot be read.

        The files are read again only if `written`, the time of run.json in ns, has changed.
        """
        id = folder.name
        if self._read.get(id, (None,))[0] != written:
            try:
                record = read_run(folder)
                shown, typed = self._shown(id, record, written)
                run = StoredRun(id, record, shown, typed)
            except (UserError, OSError, KeyError, TypeError, ValueError):
                return None
            self._read[id] = (written, run)
        run = self._read[id][1]
        if run.shown["status"] == "running" and not is_locked(folder):
            return replace(run, shown=run.shown | {"status": "stopped"})
        return run

    def _shown(
        self, id: str, record: RunFolder, written: int
    ) -> tuple[dict[str, Any], tuple[str, ...] | None]:
        """Return the values of a run for the page, and the words of its command, if known."""
        words = record.typed
        kinds = {name: kind for kind, name in OUTPUTS.items()}
        kind = kinds.get(record.output.name, "picture")
        width = height = None
        settings = changed_settings(record.settings, self._shelf)
        name = command_name(kind, record.settings)
        if record.steered:
            words = tuple(override(key, record.settings[key]) for key in settings)
        is_early = record.status == "stopped" and kind == "picture" and not record.steered
        stopped = record.steps if is_early else None
        # A damaged file's header may state any size, even one that Pillow refuses.
        broken = OSError, ValueError, Image.DecompressionBombError
        with suppress(*broken), Image.open(record.content) as image:
            width, height = image.size
        shown = {
            "id": id,
            "status": record.status,
            "settings": settings,
            "is_steered": record.steered,
            "command": "" if words is None else command_of(words, stopped, name),
            "kind": kind,
            "error": record.error,
            "is_preview": width is None and (record.folder / PREVIEW).exists(),
            "step": record.steps,
            "to_paint": record.to_paint,
            "seconds": record.seconds,
            "written": written / 1e9,
            "width": width,
            "height": height,
            "has_checkpoint": (record.folder / CHECKPOINT).exists(),
        }
        return shown, words


def keep_error(folder: Path, error: str, preview: bytes | None) -> None:
    """Write `error` into a failed run's record, and keep `preview` if the run has no pastiche.

    If there is no record, nothing is written.
    """
    # A failure, such as a full disk, is ignored: the page shows the run's error anyway.
    with suppress(OSError, ValueError, UserError):
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        if preview is not None and not (folder / PASTICHE).exists():
            (folder / PREVIEW).unlink(missing_ok=True)  # it may be a link to another file
            write_atomic(folder / PREVIEW, preview)
        # The record is written last, because its time tells the page that the run has changed.
        write_atomic(folder / RECORD, json.dumps(record | {"error": error}, indent=2).encode())
