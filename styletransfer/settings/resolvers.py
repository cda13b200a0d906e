"""What the files under configs/ may say in ${...} beside what OmegaConf and Hydra offer."""

import os
from functools import partial
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from styletransfer.resources import resource


def register_resolvers(*, claim: bool = False) -> None:
    """Register our resolvers.

    ${either:CONDITION,A,B}: A where the condition is true, else B.
    ${asset:NAME}: the path of a picture that comes with the package.
    ${new_folder:PATH,INSTEAD}: PATH, or PATH-2, PATH-3, ..., the first that did not exist: two runs
    that start in one second do not share a folder. INSTEAD where that is not empty.
    ${resumed:${resume}}: the folder that resume=FOLDER names, "." if no run has been there (then
    nothing is to be written), and nothing where a run begins in a folder of its own.

    ${names:PATHS}: the names of one or more files without folder and extension, joined by "+".

    Args:
        claim: make the new folder. False where a config is only looked at.
    """

    def folder(path: str, instead: str = "") -> str:
        return instead or (new_folder(path) if claim else path)

    register = partial(OmegaConf.register_new_resolver, replace=True)
    register("either", lambda when, a, b: a if when else b)
    register("asset", lambda name: str(resource("assets") / name))
    # Cached: one folder for one config, and for all jobs of a sweep.
    register("new_folder", folder, use_cache=True)
    register("resumed", resumed)
    register("names", names)


def names(paths: Any) -> str:
    """Return the names of files; see `register_resolvers`."""
    listed = [paths] if isinstance(paths, str) else paths or []
    return "+".join(Path(str(path)).stem for path in listed) or "none"


def resumed(resume: str | None) -> str:
    """Return the folder that a run goes on in; see `register_resolvers`."""
    if resume in (None, "auto"):
        return ""
    folder = os.path.expanduser(str(resume))
    return folder if os.path.isfile(os.path.join(folder, "run.json")) else "."


def new_folder(path: str) -> str:
    """Make a folder that did not exist: `path`, or else `path-2`, `path-3` and so on.

    Raises:
        OSError: it cannot be made.
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    claimed, number = path, 1
    while True:
        try:
            # Of several processes, only one succeeds in making it.
            Path(claimed).mkdir()
            return claimed
        except FileExistsError:
            number += 1
            claimed = f"{path}-{number}"
