"""The command `info`, which prints how a picture was made: `scripts/info.py PICTURE`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from styletransfer.errors import UserError
from styletransfer.settings import MISSING, PATHS, each, path
from styletransfer.settings.registry import command


@dataclass
class InfoConfig:
    """These are the settings of `scripts/info.py`, which prints how a picture was made."""

    picture: str = path(MISSING, positional=True)
    """Path of a painted picture or film; may be given without picture=."""
    verify: bool = False
    """Paint the picture again, in a temporary folder, from inputs with the recipe's hashes, and
    print whether the file has the same bytes, or how far its pixels differ."""
    inputs: Any = field(default=None, metadata=PATHS | {"idle": "without verify=true"})
    """For verify: input files, which may have new names, or folders of pictures. Pictures are also
    searched by name in the current folder and beside `picture`; list your own networks here."""


@command()
def info(config: InfoConfig, folder: Path) -> None:
    """Print how a picture was made."""
    from styletransfer.runs.recipe import carried
    from styletransfer.runs.verify import verified

    picture = Path(config.picture)
    recipe = carried(picture)
    for key, text in recipe.items():
        print("".join(filter(str.isprintable, f"{key}: {text}")), flush=True)
    if config.verify:
        try:
            print(f"verify: painted again, it has {verified(picture, recipe, each(config.inputs))}")
        except UserError as error:  # the message may quote unprintable text
            raise UserError("".join(filter(str.isprintable, str(error)))) from error
