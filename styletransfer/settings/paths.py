"""Names of files and folders: those that users give, and those that runs make."""

import os
from pathlib import Path
from typing import Any

from styletransfer.errors import UserError
from styletransfer.settings import ASSETS


def expanded(path: str | os.PathLike[str], *, written: bool = False) -> str:
    """Return a file name with `~` expanded, or the path of the bundled picture that it names.

    The names content/coffee.jpg and assets/content/coffee.jpg mean the bundled picture if no such
    file exists. A name without a folder, and an output (`written`), never mean a bundled picture.
    (UserError: `path` is no text, empty or an address, or no file can have this name.)
    """
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else path
    if not isinstance(name, str):
        raise UserError(f"{path!r} is no file name; give a str or a pathlib.Path")
    if not name:
        raise UserError("a file name is empty; write KEY=FILE, or leave the key out")
    try:
        possible = b"\0" not in os.fsencode(name)
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise UserError(f"{name!r} holds a character that no file name can; choose another")
    name = os.path.expanduser(name)
    if "://" in name and not os.path.lexists(name):
        raise UserError(f"{name} is an address, not a file; download it first, and name the file")
    folder, _, rest = os.path.normpath(name).replace(os.sep, "/").partition("/")
    if written or not rest or folder in ("", "..") or os.path.lexists(name):
        return name
    packaged = ASSETS / (rest if folder == "assets" else f"{folder}/{rest}")
    try:
        return str(packaged) if packaged.exists() else name
    except OSError:  # a name that is too long
        return name


def names(paths: Any) -> str:
    """Return the names of one or several files, without folder and extension, joined by "+"."""
    listed = [paths] if isinstance(paths, str) else paths or []
    return "+".join(Path(file_name(path)).stem for path in listed) or "none"


def file_name(path: str) -> str:
    """Return a path's last part; Hydra cannot have ${ in the name of a run's folder."""
    return Path(str(path)).name.replace("${", "{")


def resumed(resume: str | None) -> str:
    """Return the folder that the setting `resume` names, or "." if that folder holds no run.

    The result is "" for None and "auto": the run then uses its own folder.
    """
    if resume in (None, "auto"):
        return ""
    folder = os.path.expanduser(str(resume))
    return folder if os.path.isfile(os.path.join(folder, "run.json")) else "."


def absent(path: Path) -> list[Path]:
    """Return `path` and its parent folders as far as they do not exist, absolute, path first."""
    full = path.absolute()  # a job may change the working directory
    return [folder for folder in (full, *full.parents) if not folder.exists()]


def new_folder(path: str) -> str:
    """Make a new folder, `path`, or if that exists `path-2` and so on; return it (or OSError)."""
    claimed, number = path, 1
    while True:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        try:
            # If several processes make the same folder, only one of them succeeds.
            Path(claimed).mkdir()
            return claimed
        except FileNotFoundError:  # another run has failed and removed the empty parent folders
            continue
        except FileExistsError:
            number += 1
            claimed = f"{path}-{number}"
