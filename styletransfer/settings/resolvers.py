"""Functions that config files call as ${NAME:ARGUMENTS}: OmegaConf's resolvers.

${either:CONDITION,A,B}: A if the condition is true, otherwise B.
${asset:NAME}: the path of a picture that comes with the package.
${new_folder:PATH,INSTEAD}: INSTEAD if it is not empty; otherwise the first of PATH, PATH-2,
PATH-3, ... that does not exist. Two runs that start in the same second get different folders.
${kept_folder:PATH}: PATH, which may exist: the command uses what is already in it.
${resumed:${resume}}: the folder of the run to resume; see `resumed`.
${names:PATHS}: the names without folder and extension, joined by "+".
${file_name:PATH}: the last part of PATH.
${version:FOLDER}: "-" and eight digits that change with the files in FOLDER; "" without files.
${nowhere:}: the null device.
"""

import hashlib
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from styletransfer.settings import ASSETS
from styletransfer.settings.schemas import on_disk


def shown(path: str, instead: str = "") -> str:
    """Return `instead`, or `path` if it is "": a folder's path, for a config that is only shown."""
    return instead or path


def register_resolvers(
    new_folder: Callable[..., str] = shown, kept_folder: Callable[[str], str] = shown
) -> None:
    """Register all resolvers; each argument returns a folder's path, and may make the folder."""
    register = partial(OmegaConf.register_new_resolver, replace=True)
    register("either", lambda when, a, b: a if when else b)
    register("asset", lambda name: str(ASSETS / name))
    # The cached result is copied to each job of a sweep, so all jobs use the sweep's one folder.
    register("new_folder", new_folder, use_cache=True)
    register("kept_folder", kept_folder, use_cache=True)
    register("resumed", resumed)
    register("nowhere", lambda: os.devnull)
    register("names", names)
    register("file_name", file_name)
    register("version", version)


def names(paths: Any) -> str:
    """Return the names of files, without folder and extension, joined by "+"; "none" if no file."""
    listed = [paths] if isinstance(paths, str) else paths or []
    return "+".join(Path(file_name(path)).stem for path in listed) or "none"


def file_name(path: str) -> str:
    """Return a path's last part; { replaces ${, which Hydra does not allow in a folder's name."""
    return Path(str(path)).name.replace("${", "{")


def version(folder: str | None) -> str:
    """Return "-" and eight hexadecimal digits of a hash of the files in a folder.

    The result is "" for None, and if there is no such folder or no file in it.
    """
    place, hashed = Path(on_disk(os.path.expanduser(folder or os.devnull))), hashlib.sha256()
    files = sorted(filter(Path.is_file, place.iterdir())) if place.is_dir() else []
    for path in files:
        hashed.update(path.name.encode(errors="surrogateescape") + path.read_bytes())
    return f"-{hashed.hexdigest()[:8]}" if files else ""


def resumed(resume: str | None) -> str:
    """Return the folder `resume`, or ".", the current folder, if `resume` holds no run.

    The result is "" for None and "auto": the run then uses its own folder.
    """
    if resume in (None, "auto"):
        return ""
    folder = on_disk(os.path.expanduser(str(resume)))
    return folder if os.path.isfile(os.path.join(folder, "run.json")) else "."
