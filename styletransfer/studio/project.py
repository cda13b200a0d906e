"""A run as one file: its settings, changes, pictures and pastiche, which another studio opens.

It is a ZIP archive without a path of this machine: pictures go by the ids that their bytes make.
"""

import json
import shutil
import time
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from styletransfer import __version__
from styletransfer.errors import UserError
from styletransfer.runs.folder import CONTENT, METRICS, PASTICHE, write_record
from styletransfer.settings import each
from styletransfer.settings.paths import new_folder
from styletransfer.studio.access import RefusedError
from styletransfer.studio.controls import CONTROLS
from styletransfer.studio.form import (
    ONE_PICTURE,
    changed_settings,
    plain_values,
    read_request,
    read_values,
)
from styletransfer.studio.pictures import PictureShelf
from styletransfer.studio.reader import Reader
from styletransfer.studio.runs import StoredRun, note

# Entries of a project's archive. ABOUT: description of the run. FILES: files from the run's folder.
# PICTURES: folder of the uploaded pictures.
ABOUT, FILES, PICTURES = "project.json", (PASTICHE, CONTENT, METRICS), "pictures"
# Keys whose values are pictures.
PICTURED = {key for key, one in CONTROLS.items() if one.kind in (*ONE_PICTURE, "pictures")}
PICTURED |= {"init"}
LARGEST_ENTRY = 2**28  # largest size of an entry of the archive, in bytes, unpacked
NO_PROJECT = "that is no project of a studio, or it is damaged; get an intact copy"


def pack(run: StoredRun, shelf: PictureShelf, target: Path) -> None:
    """Write a run's project (RefusedError: it is made of pictures that are not here)."""
    record, changes = run.record, run.shown["changes"]
    if run.shown["is_film"]:
        raise RefusedError("there are projects of pictures alone; download the film", 409)
    about: dict[str, Any] = {
        "version": __version__,
        "name": run.shown["name"],
        "status": record.status,
        "seconds": record.seconds,
        "steps": record.steps,
        "settings": changed_settings(record.settings, shelf),  # before any change
        "changes": [{"after": after, "set": shown} for after, shown in changes],
    }
    ids = {
        shelf.id_of(path)
        for values in (record.settings, *(one["set"] for one in record.settings.get("changes", ())))
        for key in PICTURED & values.keys()
        for path in each(values[key])
        if path not in CONTROLS[key].choices  # a word of init, such as "noise", is no picture
    }
    if None in ids:
        raise RefusedError("the run is made of pictures that are not in this studio", 409)
    uploads = [picture for picture in shelf.all if picture.id in ids and picture.kind == "upload"]
    about["pictures"] = {one.id: {"name": one.name, "purpose": one.purpose} for one in uploads}
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr(ABOUT, json.dumps(about))
        for one in uploads:
            archive.write(one.path, f"{PICTURES}/{one.id}")
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
            request, name = read_request(about["settings"], shelf), about["name"]
            if request.command != "train":
                raise UserError(NO_PROJECT)
            await reader.ask("check", request.config)
            changes = []
            for one in about["changes"]:
                read_request(about["settings"] | one["set"], shelf)
                changes.append({"after": int(one["after"]), "set": read_values(one["set"], shelf)})
            parts = {one: _read(file, one) for one in FILES if one in file.namelist()}
            steps, seconds = about["steps"], about["seconds"]
            status = "finished" if about["status"] == "finished" else "stopped"
            made = Path(new_folder(str(folder / time.strftime("%Y-%m-%d_%H-%M-%S"))))
    except UserError:
        raise
    except Exception as error:  # damaged archives raise many kinds of errors
        raise UserError(NO_PROJECT) from error
    try:
        for file_name, content in parts.items():
            (made / file_name).write_bytes(content)
            if file_name != METRICS:
                await reader.ask("measure", str(made / file_name))
        (made / ".hydra").mkdir()
        for file_name, text in request.record.items():
            (made / ".hydra" / file_name).write_text(text, encoding="utf-8")
        note(made, name, False)
        record = {"config": plain_values(request.config) | {"changes": changes}}
        write_record(made, record, status, made / PASTICHE, steps=steps, seconds=seconds)
    except (OSError, UserError) as error:
        shutil.rmtree(made)
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"the project cannot be kept: {reason}") from error
    return made


def _read(file: zipfile.ZipFile, name: str) -> bytes:
    """Return an entry, at most as large as a pastiche may be, whatever the archive says."""
    with file.open(name) as entry:
        content = entry.read(LARGEST_ENTRY + 1)
    if len(content) > LARGEST_ENTRY:
        raise UserError(NO_PROJECT)
    return content


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content
