"""What the files under configs/ may say in ${...} beside what OmegaConf and Hydra offer."""

import os
from functools import partial
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from styletransfer.resources import resource


def register_resolvers(claimed: list[Path] | None = None) -> None:
    """Register our resolvers.

    ${either:CONDITION,A,B}: A where the condition is true, else B.
    ${asset:NAME}: the path of a picture that comes with the package.
    ${new_folder:PATH,INSTEAD}: PATH, or PATH-2, PATH-3, ..., the first that did not exist: two runs
    that start in one second do not share a folder. INSTEAD where that is not empty.
    ${kept_folder:PATH}: PATH, at every start the same.
    ${resumed:${resume}}: the folder that resume=FOLDER names, "." if no run has been there (then
    nothing is to be written), and nothing where a run begins in a folder of its own.

    ${nowhere:}: a file that swallows what is written to it.
    ${names:PATHS}: the names of one or more files without folder and extension, joined by "+".

    Args:
        claimed: receives the run's folder and the parents of it that did not exist before. None
            where a config is only looked at, and no folder is made.
    """

    def new(path: str, instead: str = "") -> str:
        if instead or claimed is None:
            return instead or path
        parents = absent(Path(path).parent)
        made = new_folder(path)
        claimed.extend([Path(made).absolute(), *parents])
        return made

    def kept(path: str) -> str:
        if claimed is not None:
            claimed.extend(absent(Path(path)))
        return path

    register = partial(OmegaConf.register_new_resolver, replace=True)
    register("either", lambda when, a, b: a if when else b)
    register("asset", lambda name: str(resource("assets") / name))
    # Cached: one folder for one config, and for all jobs of a sweep.
    register("new_folder", new, use_cache=True)
    register("kept_folder", kept, use_cache=True)
    register("resumed", resumed)
    register("nowhere", lambda: os.devnull)
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


def absent(path: Path) -> list[Path]:
    """Return what does not exist of a path and its parents, from the path up, each in full."""
    full = path.absolute()  # a job may change the working directory
    return [each for each in (full, *full.parents) if not each.exists()]


def new_folder(path: str) -> str:
    """Make a folder that did not exist: `path`, or else `path-2`, `path-3` and so on.

    Raises:
        OSError: it cannot be made.
    """
    claimed, number = path, 1
    while True:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        try:
            # Of several processes, only one succeeds in making it.
            Path(claimed).mkdir()
            return claimed
        except FileNotFoundError:  # another run has failed, and taken its empty parents away
            continue
        except FileExistsError:
            number += 1
            claimed = f"{path}-{number}"
