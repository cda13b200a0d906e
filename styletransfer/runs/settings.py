"""Settings of the commands that read finished runs: `mix` and `info`."""

from dataclasses import dataclass, field
from typing import Any

from styletransfer.settings import MISSING, PATHS, number, path


@dataclass
class MixConfig:
    """These are the settings of `scripts/mix.py`, which mixes a pastiche with its content image."""

    run: str | None = path(None, positional=True)
    """The folder of a run of `train`; may be given without run=."""
    strength: float = number(0.5, "[0, 1]")
    """Share of the pastiche in the mixture, from 0 (the content) to 1 (the pastiche)."""
    lightness_strength: float | None = number(None, "[0, 1]")
    """Share of the pastiche's lightness, from 0 to 1; null for the value of strength."""
    color_strength: float | None = number(None, "[0, 1]")
    """Share of the pastiche's colours, from 0 to 1; null for the value of strength."""
    output: str | None = path(None, written=True, piped=True)
    """Path of the mixture; the extension chooses the format; - is a PNG on standard output.
    Default: in the run folder."""
    recipe: bool = True
    """Write into the picture how it was made, as `train` does."""


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
