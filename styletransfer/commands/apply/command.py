"""Paint with a style network: `scripts/apply.py network=FILE input=PHOTO output=FILE`.

`input` may be a film, then `output` is one as well; or a folder, then `output` is one with the same
structure, and run again, it paints what is missing or older than its picture or the network.
"""

import logging
import os
import sys
from pathlib import Path

from tqdm.auto import tqdm

from styletransfer.commands.apply.painter import Painter
from styletransfer.config import ApplyConfig
from styletransfer.errors import UserError
from styletransfer.films.motion import check_flow
from styletransfer.films.painter import Steady
from styletransfer.films.read import FILM_EXTENSIONS, Film
from styletransfer.films.write import CODECS, FilmWriter, check_writable
from styletransfer.networks.file import network_file
from styletransfer.pictures import images
from styletransfer.pictures.folders import EXTENSIONS
from styletransfer.system.files import check_folder
from styletransfer.system.memory import is_out_of_memory
from styletransfer.system.signals import stop_on_signals

logger = logging.getLogger(__name__)


def main(config: ApplyConfig, folder: Path) -> None:
    """Paint what `config.input` names, and say where the pastiches are.

    Each file appears when it is complete; what was painted before a signal such as Ctrl-C stays, of
    a film under the name of a partial one.
    """
    source, network = Path(config.input), network_file(config.network)
    target = Path(config.output) if config.output else default_output(source, network)
    with stop_on_signals():
        if os.path.isdir(source):
            check_folders(source, target)
            files = pairs(source, target)
            paint_all(Painter(config), files, network)
        else:
            check_file(source, target)
            paint(Painter(config), source, target)
    print(target)


def default_output(source: Path, network: Path) -> Path:
    """Return a path in the current folder that is named after the input and the network."""
    # train_network calls every file network.safetensors, in a folder named after the style.
    name = network.parent.name if network.stem == "network" else network.stem
    return Path(as_written(f"{source.stem}_{name}{source.suffix}"))


def as_written(name: str) -> str:
    """Return a file's name as it is painted: what cannot be written becomes PNG, or MP4."""
    extension = Path(name).suffix.lower()
    if extension in EXTENSIONS and extension not in images.BIT_DEPTHS:
        return name + ".png"
    if extension in FILM_EXTENSIONS and extension not in CODECS:
        return name + ".mp4"
    return name


def check_file(source: Path, target: Path) -> None:
    """Raise UserError if a pastiche could not be written later, or would replace its picture."""
    if is_film(target):
        check_writable(target)
    elif source.suffix.lower() in FILM_EXTENSIONS:
        endings = " ".join(CODECS)
        raise UserError(f"input={source} is a film and output={target} is not; choose of {endings}")
    else:
        images.check_writable(target)
    if os.path.exists(source) and os.path.exists(target) and os.path.samefile(source, target):
        raise UserError(f"output={target} would overwrite the input; choose another")


def check_folders(source: Path, target: Path) -> None:
    """Check that two folders lie apart, so that no pastiche is ever taken for a picture."""
    inputs, outputs = Path(os.path.realpath(source)), Path(os.path.realpath(target))
    if inputs.is_relative_to(outputs) or outputs.is_relative_to(inputs):
        raise UserError(f"output={target} and input={source} lie in one another; choose another")
    if os.path.exists(outputs) and not os.path.isdir(outputs):
        raise UserError(f"output={target} is a file, and input={source} a folder; name a folder")
    check_folder(outputs / "pastiche.png")


def pairs(source: Path, target: Path) -> list[tuple[Path, Path]]:
    """Return the pictures and films below a folder, but for hidden ones, and their pastiches."""
    files = []
    for path in sorted(source.rglob("*")):
        inner = path.relative_to(source)
        if any(part.startswith(".") for part in inner.parts) or path.is_dir():
            continue
        if path.suffix.lower() in (*EXTENSIONS, *FILM_EXTENSIONS):
            files.append((path, target / inner.with_name(as_written(path.name))))
    if not files:
        advice = "name a folder of some, or a file"
        raise UserError(f"input={source} holds no picture and no film; {advice}")
    return files


def paint_all(painter: Painter, files: list[tuple[Path, Path]], network: Path) -> None:
    """Paint all files whose pastiches are not there yet; of those that cannot be, say so last."""
    left = [(source, target) for source, target in files if not is_done(target, source, network)]
    if done := len(files) - len(left):
        logger.info("%d of %d files are there already", done, len(files))
    failed = 0
    bar = tqdm(left, unit="file", dynamic_ncols=True, disable=sys.stderr is None)
    for source, target in bar:
        bar.set_postfix_str(source.name)
        try:
            paint(painter, source, target)
        except UserError as error:
            failed += 1
            logger.warning("%s", error)
    if failed:
        raise UserError(
            f"{failed} of {len(files)} files could not be painted, see above; the others are done"
        )


def is_done(target: Path, *made_of: Path) -> bool:
    """Tell whether a pastiche is there and younger than what it is made of."""
    try:
        return all(target.stat().st_mtime_ns > path.stat().st_mtime_ns for path in made_of)
    except OSError:
        return False


def paint(painter: Painter, source: Path, target: Path) -> None:
    """Paint a film if `target` has the extension of one, otherwise a picture."""
    try:
        (paint_film if is_film(target) else paint_picture)(painter, source, target)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise UserError(f"{source} fits no memory; choose a smaller size or strip") from error


def is_film(target: Path) -> bool:
    """Tell whether a file of this name is written as a film."""
    return target.suffix.lower() in CODECS


def paint_picture(painter: Painter, source: Path, target: Path) -> None:
    """Paint a picture; its transparency is kept."""
    picture = images.read(source)
    size = painter.size(picture.size, source)
    picture = images.resize_picture(picture, max(size))
    content = images.fill_transparent(picture)
    images.write(target, painter.paint(content, painter.rows(size)), picture.alpha)


def paint_film(painter: Painter, source: Path, target: Path) -> None:
    """Paint a film, each frame by itself but for `steady`; its times and its sound are kept."""
    with Film(source) as film, FilmWriter(target, like=film) as writer:
        size = painter.size(film.size, source)
        rows = painter.rows(size)
        steady = Steady(painter.config.steady)
        if steady.strength:
            check_flow(size)
        for frame in film.bar(film.frames()):
            content = images.resize(frame.image, size)
            painted = painter.paint(content, rows)
            writer.write(steady.mixed(content, painted), frame.time)
