"""Paint with a style network: `scripts/apply.py network=FILE input=PHOTO output=FILE`.

If `input` is a film, so is `output`. If `input` is a folder, `output` is a folder with the same
structure, or a film whose frames are the pictures in the folder. For a folder, a second call paints
only the pastiches that are missing in `output`; it raises UserError if those in `output` were
painted with other settings. With `random=true`, each file of a folder gets a random style image and
strength, to make a varied data set for training.
"""

import json
import logging
import os
import shlex
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from contextlib import closing
from dataclasses import replace
from os.path import lexists
from pathlib import Path
from tempfile import TemporaryDirectory

from styletransfer.errors import UserError
from styletransfer.films.formats import FILM_EXTENSIONS, is_film
from styletransfer.films.write import check_writable, film_files
from styletransfer.formats.folders import files_at, picture_extensions, warn_of_others
from styletransfer.job.sources import files_of
from styletransfer.networks.apply.draws import draw
from styletransfer.networks.apply.overlap import Writing, ahead
from styletransfer.networks.apply.painter import (
    Painter,
    as_written,
    memory_for,
    network_path,
    paint_file,
    painted,
)
from styletransfer.networks.apply.parts import of_part, part_locked
from styletransfer.networks.apply.shards import first_pair, is_shard, paint_shard
from styletransfer.networks.commands.apply import ApplyConfig
from styletransfer.pictures import images
from styletransfer.pictures.images import Picture
from styletransfer.runs.recipe import carried, text_of
from styletransfer.settings import each
from styletransfer.settings.idle import warn_if_typed
from styletransfer.system.files import to_json
from styletransfer.system.locks import output_locked, remove_stale
from styletransfer.system.outputs import check_folder, check_outputs
from styletransfer.system.progress import progress_bar
from styletransfer.system.signals import stop_on_signals

logger = logging.getLogger(__name__)


def apply_network(config: ApplyConfig) -> None:
    """Paint the file or folder `config.input`, and print the path of the result.

    A file gets its name when it is complete. After a signal such as Ctrl-C, finished files stay,
    and an unfinished film is NAME.styletransfer-partial.EXTENSION.
    """
    source, network = Path(config.input), network_path(config)
    target = Path(config.output) if config.output else default_output(source, network)
    start = time.perf_counter()
    with stop_on_signals():
        if not source.exists():
            raise UserError(f"input={source} does not exist; check the path")
        is_folder = source.is_dir() and not is_film(target)
        other = f"output={target} is a film" if source.is_dir() else f"input={source} is none"
        for word, given in (("random=true", config.random), ("parts=", config.parts > 1)):
            if given and not is_folder:
                raise UserError(f"{word} is for a folder, and {other}")
        if is_folder:
            paint_folder(config, source, target, network)
        else:
            check_file(config, source, target, network)
            with output_locked(target):
                painter = Painter(config)
                warn_of_idle_keys(painter, [target])
                paint_any(painter, source, target)
    seconds = round(time.perf_counter() - start, 1)
    is_json = config.format == "json"
    print(to_json({"output": str(target), "seconds": seconds}) if is_json else target)


def warn_of_idle_keys(painter: Painter, outputs: Iterable[Path]) -> None:
    """Log a warning for each setting that was typed but has no effect here."""
    if not any(map(is_film, outputs)):
        warn_if_typed("where no film is painted", "steady")
    if painter.paintings is None:
        warn_if_typed("on the network's own styles", "style_size")


def default_output(source: Path, network: Path) -> Path:
    """Return a path in the current folder, named after the input and the network's file."""
    # train_network writes every network as network.safetensors, in a folder named after the style.
    name = network.parent.name if network.stem == "network" else network.stem
    if source.is_dir():
        return Path(f"{source.name}_{name}")
    return Path(as_written(f"{source.stem}_{name}{source.suffix}"))


def check_file(config: ApplyConfig, source: Path, target: Path, network: Path) -> None:
    """Raise UserError if the pastiche `target` could not be written or would replace an input."""
    check_outputs(_written(target), [("input", source), *_read_beside(config, network)])
    if is_shard(target) or is_shard(source):
        if not (is_shard(target) and is_shard(source)):
            raise UserError(f"{source} and {target}: of a .tar archive a .tar archive is made")
        check_folder(target)
    elif is_film(target) or is_film(source):
        check_writable(target)
    else:
        images.check_writable(target)


def paint_folder(config: ApplyConfig, source: Path, target: Path, network: Path) -> None:
    """Paint each file that has no pastiche yet; raise UserError at the end if some failed."""
    check_folders(source, target)
    files = of_part(config, pairs(source, target), target)
    written = [name for _, path in files for name in _written(path)]
    inputs = (("input", path) for path, _ in files)
    check_outputs(written, [*_read_beside(config, network), *inputs])
    if config.random and any(is_shard(path) for path, _ in files):
        raise UserError(f"random=true draws a style for each file; unpack the shards in {source}")
    one = replace(config, parts=1, part=0)  # the recipes in pictures do not mention parts
    if config.random:
        one.style = files_of("style", config.style)[0]
    painter = Painter(one)
    warn_of_idle_keys(painter, [pastiche for _, pastiche in files])
    if config.random and painter.paintings is None:
        raise UserError("random=true needs a network that knows any style")
    target.mkdir(parents=True, exist_ok=True)
    with part_locked(config, target):
        draws = draw(config, source, target, files) if config.random else {}
        for folder in {path.parent for _, path in files} if config.parts == 1 else ():
            remove_stale(folder)  # not with parts: other jobs may be writing there
        is_done = {pair: lexists(pair[1]) for pair in files}
        left, done = ([pair for pair in files if is_done[pair] is when] for when in (False, True))
        left.sort(key=lambda pair: draws.get(pair[0], ("", 0.0))[0])  # each style is encoded once
        if done:
            if not draws:
                check_done(painter, done)
            logger.info("%d of %d files are in %s already, and stay", len(done), len(files), target)
        failed = paint_pairs(painter, left, draws)
    if failed:
        raise UserError(
            f"{failed} of {len(files)} files could not be painted, see above; the others are done"
        )


def paint_pairs(
    painter: Painter, files: list[tuple[Path, Path]], draws: Mapping[Path, tuple[str, float]]
) -> int:
    """Paint pairs (file, pastiche); log why files could not be painted, and return their number."""
    errors = list[UserError]()

    def tell(error: UserError) -> None:
        errors.append(error)
        logger.warning("%s", error)

    reading = closing(ahead(read_picture, files))
    with reading as read, Writing(tell) as writing:
        bar = progress_bar(read, total=len(files), unit="file")
        for (path, pastiche), picture in bar:
            bar.set_postfix_str(path.name)
            try:
                if draws:
                    painter.take(*draws[path])
                if is_picture(pastiche):
                    with memory_for(path):
                        write = painted(painter, taken(picture, path), path, pastiche)
                    writing.call(memory_for(path)(write))
                else:
                    paint_any(painter, path, pastiche)
            except UserError as error:
                writing.settle()  # errors are told in the order of the files
                tell(error)
    return len(errors)


def is_picture(pastiche: Path) -> bool:
    """Return whether a pastiche is a picture, and no film or shard."""
    return not (is_shard(pastiche) or is_film(pastiche))


def read_picture(pair: tuple[Path, Path]) -> Picture | None:
    """Return the picture of a pair (file, pastiche); None for a film or a shard."""
    return images.read(pair[0]) if is_picture(pair[1]) else None


def taken(picture: Future[Picture | None], path: Path) -> Picture:
    """Return the picture that was read ahead, or read it now if there was too little memory."""
    try:
        found = picture.result()
    except (MemoryError, RuntimeError, SystemError):
        found = None
    return found or images.read(path)


def check_done(painter: Painter, done: list[tuple[Path, Path]]) -> None:
    """Check that existing pastiches, pairs (file, pastiche), were painted with these settings.

    A warning counts the pastiches without a recipe. (UserError if one has another recipe.)
    """
    unknown = 0
    for path, pastiche in done:
        try:
            then, now = recipes(painter, path, pastiche)
        except (UserError, ValueError):
            unknown += 1
            continue
        if changed := sorted(key for key, _ in then ^ now):
            raise UserError(
                f"{pastiche} was painted with another {changed[0].removeprefix('sha256 of ')}; "
                "choose another output, or remove it"
            )
    if unknown:
        logger.warning("%d of them may have other settings: they carry no recipe", unknown)


def recipes(painter: Painter, path: Path, pastiche: Path) -> list[set[tuple[str, str]]]:
    """Return the `essence` of the recipe stored in `pastiche`, and of the one to be stored now.

    For a shard, both are recipes of its first picture.
    """
    if is_shard(pastiche):
        with TemporaryDirectory() as folder:
            return recipes(painter, *first_pair(path, pastiche, Path(folder)))
    now = json.loads(text_of("apply", painter.recipe_of(path)))
    return [essence(carried(pastiche)), essence(now)]


def essence(recipe: Mapping[str, str]) -> set[tuple[str, str]]:
    """Return the (key, value) pairs of a recipe: its settings, except device, and its hashes."""
    words = (word.partition("=") for word in shlex.split(recipe["command"])[2:])
    values = {key: value for key, _, value in words if key != "device"}
    return {*(values | {key: recipe[key] for key in recipe if key.startswith("sha256")}).items()}


def paint_any(painter: Painter, source: Path, target: Path) -> None:
    """Paint a picture, a film or a tar archive of pictures (UserError if it cannot be painted)."""
    (paint_shard if is_shard(target) else paint_file)(painter, source, target)


def check_folders(source: Path, target: Path) -> None:
    """Raise UserError if one folder contains the other, or `target` is named like a file."""
    is_file = is_shard(target) or target.suffix.lower() in picture_extensions()
    if is_file and not target.exists():
        advice = f"and output={target} has the name of a file; name a folder, or a film"
        raise UserError(f"input={source} is a folder, {advice}")
    inputs, outputs = Path(os.path.realpath(source)), Path(os.path.realpath(target))
    if inputs.is_relative_to(outputs) or outputs.is_relative_to(inputs):
        raise UserError(f"output={target} and input={source} lie in one another; choose another")


def pairs(source: Path, target: Path) -> list[tuple[Path, Path]]:
    """Return (file, path of its pastiche) for all pictures, films and shards below `source`.

    Hidden files are left out. A warning names the files that are none of these. (UserError if there
    is no file to paint.)
    """
    files, others = [], []
    for path in sorted(source.rglob("*")):
        inner = path.relative_to(source)
        if any(part.startswith(".") for part in inner.parts) or path.is_dir():
            continue
        if is_shard(path) or path.suffix.lower() in (*picture_extensions(), *FILM_EXTENSIONS):
            files.append((path, target / inner.with_name(as_written(path.name))))
        else:
            others.append(str(inner))
    warn_of_others(str(source), tuple(others))
    if not files:
        advice = "name a folder of some, or a file"
        raise UserError(f"input={source} holds no picture and no film; {advice}")
    return files


def _read_beside(config: ApplyConfig, network: Path) -> list[tuple[str, str | Path]]:
    """Return (key, path) of the files that are read besides the input: network, styles, masks."""
    styles = [path for name in each(config.style) for path in files_at(name)]
    masks = {key: getattr(config, key) for key in ("content_regions", "protect")}
    drawn = [(key, path) for key, path in masks.items() if path]
    return [("network", network), *(("style", path) for path in styles), *drawn]


def _written(target: Path) -> tuple[Path, ...]:
    """Return the files that painting writes: `target` and, for a film, its partial file."""
    return film_files(target) if is_film(target) else (target,)
