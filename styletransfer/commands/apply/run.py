"""From pictures to pastiches: a file, or a folder with all that is below it."""

import logging
import os
import sys
from pathlib import Path

from tqdm.auto import tqdm

from styletransfer import films
from styletransfer.commands.apply.files import is_film, paint
from styletransfer.commands.apply.painter import Painter
from styletransfer.config import ApplyConfig
from styletransfer.errors import UserError
from styletransfer.networks.file import network_file
from styletransfer.pictures import images
from styletransfer.pictures.folders import EXTENSIONS
from styletransfer.system.files import check_folder
from styletransfer.system.signals import stop_on_signals

logger = logging.getLogger(__name__)


def apply(config: ApplyConfig) -> Path:
    """Paint what `config.input` names, and return where the pastiches are.

    Each file appears when it is complete; what was painted before a signal such as Ctrl-C stays, of
    a film under the name of a partial one.

    Raises:
        UserError: bad input, before anything is written; or, after all others have been painted,
            files of a folder that could not be.
        Stopped: a signal has come.
    """
    source, network = Path(config.input), network_file(config.network)
    target = Path(config.output) if config.output else default_output(source, network)
    with stop_on_signals():
        if not os.path.isdir(source):
            check_file(source, target)
            paint(Painter(config), source, target)
            return target
        check_folders(source, target)
        jobs = pairs(source, target)
        painter = Painter(config)
        paint_all(painter, jobs, network)
    return target


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
    if extension in films.EXTENSIONS and extension not in films.CODECS:
        return name + ".mp4"
    return name


def check_file(source: Path, target: Path) -> None:
    """Fail now if a pastiche could not be written later, or would replace its picture.

    Raises:
        UserError: in one line.
    """
    if is_film(target):
        films.check_writable(target)
    elif source.suffix.lower() in films.EXTENSIONS:
        endings = " ".join(films.CODECS)
        raise UserError(f"input={source} is a film and output={target} is not; choose of {endings}")
    else:
        images.check_writable(target)
    if os.path.exists(source) and os.path.exists(target) and os.path.samefile(source, target):
        raise UserError(f"output={target} would overwrite the input; choose another")


def check_folders(source: Path, target: Path) -> None:
    """Check that two folders lie apart, so that no pastiche is ever taken for a picture.

    Raises:
        UserError: one lies in the other, or the output is a file or cannot be written to.
    """
    here, there = Path(os.path.realpath(source)), Path(os.path.realpath(target))
    if here.is_relative_to(there) or there.is_relative_to(here):
        raise UserError(f"output={target} and input={source} lie in one another; choose another")
    if os.path.exists(there) and not os.path.isdir(there):
        raise UserError(f"output={target} is a file, and input={source} a folder; name a folder")
    check_folder(there / "pastiche.png")


def pairs(source: Path, target: Path) -> list[tuple[Path, Path]]:
    """Return the pictures and films below a folder, hidden ones aside, and where they are painted.

    A format that cannot be written becomes PNG, or MP4: a.gif is painted to a.gif.png.

    Raises:
        UserError: there is none.
    """
    found = []
    for path in sorted(source.rglob("*")):
        inner = path.relative_to(source)
        if any(part.startswith(".") for part in inner.parts) or path.is_dir():
            continue
        if path.suffix.lower() in (*EXTENSIONS, *films.EXTENSIONS):
            found.append((path, target / inner.with_name(as_written(path.name))))
    if not found:
        raise UserError(
            f"input={source} holds no picture and no film; name a folder of some, or a file"
        )
    return found


def paint_all(painter: Painter, jobs: list[tuple[Path, Path]], network: Path) -> None:
    """Paint all files whose pastiches are not there yet, and go on where one cannot be painted.

    Raises:
        UserError: counting those that could not be painted, once all others are.
    """
    left = [(source, target) for source, target in jobs if not is_done(source, target, network)]
    if done := len(jobs) - len(left):
        logger.info("%d of %d files are there already", done, len(jobs))
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
            f"{failed} of {len(jobs)} files could not be painted, see above; the others are done"
        )


def is_done(source: Path, target: Path, network: Path) -> bool:
    """Tell whether a pastiche is there and younger than what it is made of."""
    try:
        made = target.stat().st_mtime_ns
        return made > max(path.stat().st_mtime_ns for path in (source, network))
    except OSError:
        return False
