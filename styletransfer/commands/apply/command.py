"""Paint with a style network: `scripts/apply.py network=FILE input=PHOTO output=FILE`.

If `input` is a film, so is `output`. If `input` is a folder, `output` is a folder with the same
structure; a second call paints only missing files and files whose inputs have changed.
"""

import hashlib
import json
import logging
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from styletransfer.commands.apply.painter import Painter, is_film, network_path, paint
from styletransfer.errors import UserError
from styletransfer.films.write import CODECS, check_writable, files_of
from styletransfer.pictures import images
from styletransfer.pictures.formats import (
    FILM_EXTENSIONS,
    files_at,
    picture_extensions,
    warn_of_others,
)
from styletransfer.runs.recipe import settings
from styletransfer.settings import ApplyConfig
from styletransfer.settings.groups import each
from styletransfer.system.files import (
    check_folder,
    check_outputs,
    keep_lines,
    locked,
    remove_stale,
    sha256,
)
from styletransfer.system.signals import stop_on_signals

logger = logging.getLogger(__name__)

# In the painted folder: one line before each file is painted, and one line after.
RECORD = ".styletransfer.jsonl"
# Keys left out of a pastiche's hash; the network counts by the SHA-256 of its file.
FREE_KEYS = ("input", "output", "network", "device", "strip")


def main(config: ApplyConfig, folder: Path) -> None:
    """Paint the file or folder `config.input`, and print the path of the result.

    Each file appears when it is complete. After a signal such as Ctrl-C finished files stay, and
    an unfinished film stays under the name of a partial one.
    """
    source, network = Path(config.input), network_path(config)
    target = Path(config.output) if config.output else default_output(source, network)
    with stop_on_signals():
        if source.is_dir():
            paint_folder(config, source, target, network)
        else:
            check_file(config, source, target, network)
            paint(Painter(config), source, target)
    print(target)


def default_output(source: Path, network: Path) -> Path:
    """Return a path in the current folder that is named after the input and the network."""
    # train_network calls every file network.safetensors, in a folder named after the style.
    name = network.parent.name if network.stem == "network" else network.stem
    if source.is_dir():
        return Path(f"{source.name}_{name}")
    if source.suffix.lower() not in (*picture_extensions(), *FILM_EXTENSIONS):
        raise UserError(
            f"input={source} has the name of no picture and no film; name it so, or say what to "
            "make of it: output=NAME.png or output=NAME.mp4"
        )
    return Path(as_written(f"{source.stem}_{name}{source.suffix}"))


def check_file(config: ApplyConfig, source: Path, target: Path, network: Path) -> None:
    """Raise UserError if a pastiche could not be written later, or would replace an input."""
    if is_film(target):
        check_writable(target)
    elif source.suffix.lower() in FILM_EXTENSIONS:
        endings = " ".join(CODECS)
        raise UserError(f"input={source} is a film and output={target} is not; choose of {endings}")
    else:
        images.check_writable(target)
    check_outputs(_written(target), [("input", source), *_read_beside(config, network)])


def paint_folder(config: ApplyConfig, source: Path, target: Path, network: Path) -> None:
    """Paint all files without a current pastiche (UserError, at the end: files that failed)."""
    check_folders(source, target)
    files = pairs(source, target)
    written = [name for _, path in files for name in _written(path)]
    beside = _read_beside(config, network)
    check_outputs(written, [*beside, *(("input", path) for path, _ in files)])
    painter, values = Painter(config), settings(config, FREE_KEYS)
    depends_on = {key: values[key] for key in values if key not in FREE_KEYS}
    depends_on["read"] = [sha256(path) for _, path in beside if os.path.isfile(path)]
    target.mkdir(parents=True, exist_ok=True)
    with locked(target, "choose another output"):
        made = _made(target)
        for _, path in files:
            if os.path.lexists(path) and path not in made:
                raise UserError(
                    f"{path} is there already, and was not painted by this command; move it away, "
                    "or choose another output"
                )
        for folder in {path.parent for _, path in files}:
            remove_stale(folder)
        work = [(path, pastiche, _made_of(path, depends_on)) for path, pastiche in files]
        left = [one for one in work if not one[1].exists() or made.get(one[1]) != one[2]]
        if done := len(files) - len(left):
            logger.info("%d of %d files are there already", done, len(files))
        failed = 0
        bar = tqdm(left, unit="file", dynamic_ncols=True, disable=sys.stderr is None)
        for path, pastiche, made_of in bar:
            bar.set_postfix_str(path.name)
            try:
                _note(target, pastiche, None)
                paint(painter, path, pastiche)
                _note(target, pastiche, made_of)
            except UserError as error:
                failed += 1
                logger.warning("%s", error)
    if failed:
        raise UserError(
            f"{failed} of {len(files)} files could not be painted, see above; the others are done"
        )


def as_written(name: str) -> str:
    """Return a pastiche's file name; formats that cannot be written become PNG or MP4."""
    extension = Path(name).suffix.lower()
    if extension in picture_extensions() and extension not in images.BIT_DEPTHS:
        return name + ".png"
    if extension in FILM_EXTENSIONS and extension not in CODECS:
        return name + ".mp4"
    return name


def check_folders(source: Path, target: Path) -> None:
    """Check that neither folder contains the other, so that no pastiche becomes an input."""
    inputs, outputs = Path(os.path.realpath(source)), Path(os.path.realpath(target))
    if inputs.is_relative_to(outputs) or outputs.is_relative_to(inputs):
        raise UserError(f"output={target} and input={source} lie in one another; choose another")
    if os.path.exists(outputs) and not os.path.isdir(outputs):
        raise UserError(f"output={target} is a file, and input={source} a folder; name a folder")
    check_folder(outputs / RECORD)


def pairs(source: Path, target: Path) -> list[tuple[Path, Path]]:
    """Return (file, pastiche) for all pictures and films below a folder, except hidden ones.

    A warning names all other files.
    """
    files, others = [], []
    for path in sorted(source.rglob("*")):
        inner = path.relative_to(source)
        if any(part.startswith(".") for part in inner.parts) or path.is_dir():
            continue
        if path.suffix.lower() in (*picture_extensions(), *FILM_EXTENSIONS):
            files.append((path, target / inner.with_name(as_written(path.name))))
        else:
            others.append(str(inner))
    warn_of_others(str(source), tuple(others))
    if not files:
        advice = "name a folder of some, or a file"
        raise UserError(f"input={source} holds no picture and no film; {advice}")
    return files


def _read_beside(config: ApplyConfig, network: Path) -> list[tuple[str, str | Path]]:
    """Return (key, file) of the network, of the regions, and of styles that are pictures."""
    pictures = {"style": config.style, "content_regions": config.content_regions}
    named = [(key, path) for key, value in pictures.items() for path in each(value)]
    return [("network", network), *((key, path) for key, name in named for path in files_at(name))]


def _written(target: Path) -> tuple[Path, ...]:
    """Return the files that painting `target` writes; an incomplete film has another name."""
    return files_of(target) if is_film(target) else (target,)


def _made(folder: Path) -> dict[Path, str | None]:
    """Return file -> hash of its inputs, None if incomplete, from the folder's record."""
    made: dict[Path, str | None] = {}

    def take(line: dict[str, Any]) -> bool:
        made[folder / line["file"]] = line["made_of"]
        return True

    if (folder / RECORD).exists():
        keep_lines(folder / RECORD, take)
    return made


def _note(folder: Path, pastiche: Path, made_of: str | None) -> None:
    """Record the hash of a pastiche's inputs; None before it is painted."""
    line = json.dumps({"file": pastiche.relative_to(folder).as_posix(), "made_of": made_of})
    try:
        with (folder / RECORD).open("a", encoding="utf-8") as file:
            file.write(line + "\n")
    except OSError as error:
        raise UserError(f"cannot write {folder / RECORD}: {error.strerror}") from error


def _made_of(path: Path, values: dict[str, Any]) -> str:
    """Return a SHA-256 of the settings and of a picture's modification time and length."""
    with suppress(OSError):  # reading it raises later
        found = path.stat()
        values = values | {"time": found.st_mtime_ns, "bytes": found.st_size}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
