"""Paint with a style network: `scripts/apply.py network=FILE input=PHOTO output=FILE`.

`input` may be a film, then `output` is one as well; or a folder, then `output` is one with the same
structure, and run again, it paints what is missing or would be another picture by now.
"""

from pathlib import Path

from styletransfer.commands.apply.folder import as_written, paint_folder
from styletransfer.commands.apply.painter import Painter, is_film, paint
from styletransfer.config import ApplyConfig
from styletransfer.errors import UserError
from styletransfer.films.read import FILM_EXTENSIONS
from styletransfer.films.write import CODECS, check_writable, files_of
from styletransfer.networks.file import network_file
from styletransfer.pictures import images
from styletransfer.settings.paths import EXTENSIONS
from styletransfer.system.files import check_outputs
from styletransfer.system.signals import stop_on_signals


def main(config: ApplyConfig, folder: Path) -> None:
    """Paint what `config.input` names, and say where the pastiches are.

    Each file appears when it is complete; what was painted before a signal such as Ctrl-C stays, of
    a film under the name of a partial one.
    """
    source, network = Path(config.input), network_file(config.network)
    target = Path(config.output) if config.output else default_output(source, network)
    with stop_on_signals():
        if source.is_dir():
            paint_folder(config, source, target, network)
        else:
            check_file(source, target, network)
            paint(Painter(config), source, target)
    print(target)


def default_output(source: Path, network: Path) -> Path:
    """Return a path in the current folder that is named after the input and the network."""
    # train_network calls every file network.safetensors, in a folder named after the style.
    name = network.parent.name if network.stem == "network" else network.stem
    if source.is_dir():
        return Path(f"{source.name}_{name}")
    if source.suffix.lower() not in (*EXTENSIONS, *FILM_EXTENSIONS):
        raise UserError(
            f"input={source} has the name of no picture and no film; name it so, or say what to "
            "make of it: output=NAME.png or output=NAME.mp4"
        )
    return Path(as_written(f"{source.stem}_{name}{source.suffix}"))


def check_file(source: Path, target: Path, network: Path) -> None:
    """Raise UserError if a pastiche could not be written later, or would replace what is read."""
    if is_film(target):
        check_writable(target)
    elif source.suffix.lower() in FILM_EXTENSIONS:
        endings = " ".join(CODECS)
        raise UserError(f"input={source} is a film and output={target} is not; choose of {endings}")
    else:
        images.check_writable(target)
    written = files_of(target) if is_film(target) else [target]
    check_outputs(written, [("input", source), ("network", network)])
