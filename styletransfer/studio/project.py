"""A run as one file: its settings, changes, pictures and pastiche, which another studio opens.

It is a ZIP archive without a path of this machine: pictures go by the ids that their bytes make.
"""

import json
import time
import zipfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from styletransfer import __version__
from styletransfer.errors import UserError
from styletransfer.runs.folder import CONTENT, METRICS, PASTICHE, write_record
from styletransfer.settings.paths import new_folder
from styletransfer.studio.access import RefusedError
from styletransfer.studio.form import (
    changed_settings,
    plain_values,
    read_request,
    read_values,
    shown_values,
)
from styletransfer.studio.pictures import LARGEST, PictureShelf, id_of_file
from styletransfer.studio.reader import Reader
from styletransfer.studio.runs import StoredRun, note
from styletransfer.system.files import atomic

# What is said of a run, the files of its folder that go along, and the folder of its pictures.
ABOUT, FILES, PICTURES = "project.json", (PASTICHE, CONTENT, METRICS), "pictures"
NO_PROJECT = "that is no project of a studio, or it is damaged; get an intact copy"


@dataclass
class _Packed:
    """Stands for the shelf where a run's pictures get their ids."""

    shelf: PictureShelf
    files: dict[str, Path] = field(default_factory=dict)  # id -> file, but for bundled ones

    def id_of(self, path: str) -> str:
        known = self.shelf.id_of(path)
        if known and self.shelf.find(known).kind != "upload":
            return known
        try:
            id = id_of_file(Path(path))
        except UserError as error:
            said = f"{Path(path).name} cannot be read, so there is no project of the run"
            raise RefusedError(said, 409) from error
        self.files[id] = Path(path)
        return id

    def about(self, id: str) -> dict[str, str]:
        known = self.shelf.id_of(str(self.files[id]))
        picture = self.shelf.find(known) if known else None
        name = picture.name if picture else self.files[id].name
        return {"name": name, "purpose": picture.purpose if picture else ""}


def pack(run: StoredRun, shelf: PictureShelf, target: Path) -> None:
    """Write a run's project (RefusedError: a picture that it was made of cannot be read)."""
    record, packed = run.record, _Packed(shelf)
    about: dict[str, Any] = {
        "version": __version__,
        "name": run.shown["name"],
        "status": record.status,
        "seconds": record.seconds,
        "steps": record.steps,
        "settings": changed_settings(record.settings, packed),
        "changes": [
            {"after": one["after"], "set": shown_values(one["set"], packed)}
            for one in record.settings.get("changes", [])
        ],
    }
    about["pictures"] = {id: packed.about(id) for id in packed.files}
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr(ABOUT, json.dumps(about))
        for id, path in packed.files.items():
            archive.write(path, f"{PICTURES}/{id}")
        for name in FILES:
            if (record.folder / name).is_file():
                archive.write(record.folder / name, name)


async def unpack(archive: Path, folder: Path, shelf: PictureShelf, reader: Reader) -> Path:
    """Keep a project's pictures, and its run in a new folder of `folder`; return that.

    Every value goes through what the page's own settings go through, and every picture through
    what an upload does. (UserError: it is none, or no such run could have been made here.)
    """
    try:
        with zipfile.ZipFile(archive) as file:
            about = json.loads(_read(file, ABOUT))
            for id, said in about["pictures"].items():
                body = _once(_read(file, f"{PICTURES}/{id}"))
                taken = await shelf.take(str(said["name"]), str(said["purpose"]), body)
                if taken.id != id:
                    raise UserError(NO_PROJECT)
            request = read_request(about["settings"], shelf)
            await reader.ask("check", request.config)
            changes = []
            for one in about["changes"]:
                read_request(about["settings"] | one["set"], shelf)
                changes.append({"after": int(one["after"]), "set": read_values(one["set"], shelf)})
            parts = {name: _read(file, name) for name in FILES if name in file.namelist()}
            steps, seconds = about["steps"], about["seconds"]
            status = "finished" if about["status"] == "finished" else "stopped"
            made = Path(new_folder(str(folder / time.strftime("%Y-%m-%d_%H-%M-%S"))))
    except (zipfile.BadZipFile, ValueError, LookupError, TypeError, AttributeError) as error:
        raise UserError(NO_PROJECT) from error
    for name, content in parts.items():
        (made / name).write_bytes(content)
    for name, text in request.record.items():
        with atomic(made / ".hydra" / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
    config = plain_values(request.config) | {"changes": changes}
    note(made, about["name"], False)
    write_record(made, {"config": config}, status, made / PASTICHE, steps=steps, seconds=seconds)
    return made


def _read(file: zipfile.ZipFile, name: str) -> bytes:
    """Return an entry, at most as large as an upload, whatever the archive says."""
    with file.open(name) as entry:
        content = entry.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise UserError(NO_PROJECT)
    return content


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content
