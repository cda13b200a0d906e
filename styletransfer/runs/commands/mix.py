"""The command `mix`, which mixes a pastiche with its content: `scripts/mix.py RUN strength=0.6`.

RUN is the folder of a run of `train`. It holds both pictures, so nothing is painted again.
"""

import warnings
from dataclasses import dataclass
from pathlib import Path

from styletransfer.errors import UserError
from styletransfer.settings import number, path
from styletransfer.settings.registry import command


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


@command(repeatable=True)
def mix(config: MixConfig, folder: Path) -> None:
    """Mix a finished pastiche with its content.

    The mixture has the pastiche's transparency. Mixed colours outside of sRGB become less
    saturated, see `styletransfer.pictures.color`. (UserError if an input cannot be used.)
    """
    from styletransfer.pictures import images
    from styletransfer.pictures.color import mixed
    from styletransfer.runs.folder import read_run
    from styletransfer.runs.recipe import metadata, recipe
    from styletransfer.runs.record import CONTENT, PASTICHE
    from styletransfer.settings.idle import warn_if_typed
    from styletransfer.system.files import sha256
    from styletransfer.system.locks import output_locked
    from styletransfer.system.outputs import check_outputs

    if config.run is None:
        raise UserError("name the folder of a run: styletransfer mix FOLDER strength=0.6")
    folder = Path(config.run)
    shares = (config.lightness_strength, config.color_strength)
    if None not in shares:
        warn_if_typed("with both lightness_strength and color_strength", "strength")
    lightness, color = (config.strength if share is None else share for share in shares)
    run = read_run(folder)
    name = f"lightness_{lightness:g}_color_{color:g}" if lightness != color else f"{color:g}"
    target = Path(config.output) if config.output else folder / f"mix_{name}.png"
    check_outputs([target], run.files)
    images.check_writable(target)
    with output_locked(target):
        content, pastiche = (images.read(folder / name) for name in (CONTENT, PASTICHE))
        if content.size != pastiche.size:
            raise UserError(f"{content.name} and {pastiche.name} differ in size; run it again")
        images.check_writable(target, content.size)
        if run.status != "finished":
            note = f"the run in {folder} is not finished ({run.status})"
            warnings.warn(f"{note}: this is its best picture so far", stacklevel=2)
        rgb = mixed(content.rgb, pastiche.rgb, lightness, color)
        xmp = b""
        if config.recipe:
            hashes = {"run": [sha256(folder / name) for name in (CONTENT, PASTICHE)]}
            xmp = metadata("mix", recipe(config, ("run",)) | {"files": hashes})
        images.write(target, rgb, pastiche.alpha, xmp=xmp)
    print(target)
