"""What the files under configs/ may say in ${...} beside what OmegaConf and Hydra offer."""

import itertools
from pathlib import Path

from omegaconf import OmegaConf

from styletransfer.resources import resource


def register_resolvers(*, claim: bool = False) -> None:
    """Register our resolvers.

    ${either:CONDITION,A,B}: A where the condition is true, else B.
    ${asset:NAME}: the path of a picture that comes with the package.
    ${new_folder:PATH,UNLESS}: PATH, or PATH-2, PATH-3, ..., the first that did not exist: two runs
    that start in one second do not share a folder. "." if the condition UNLESS is true.

    Args:
        claim: make the new folder. False where a config is only looked at.
    """
    OmegaConf.register_new_resolver("either", lambda when, a, b: a if when else b, replace=True)
    OmegaConf.register_new_resolver(
        "asset", lambda name: str(resource("assets") / name), replace=True
    )
    OmegaConf.register_new_resolver(
        "new_folder",
        lambda path, unless=False: "." if unless else (new_folder(path) if claim else path),
        replace=True,
        use_cache=True,  # one folder for one config, and for all jobs of a sweep
    )


def new_folder(path: str) -> str:
    """Make a folder that did not exist: `path`, or else `path-2`, `path-3` and so on.

    Raises:
        OSError: it cannot be made.
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    for number in itertools.count(2):
        try:
            # Of several processes, only one succeeds in making it.
            Path(claimed := path if number == 2 else f"{path}-{number - 1}").mkdir()
        except FileExistsError:
            continue
        return claimed
    raise AssertionError("unreachable")
