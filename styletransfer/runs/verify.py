"""Paints a picture or film again from its recipe: `scripts/info.py PICTURE verify=true`.

The recipe may come from a stranger. So only known settings are used, and a file is an input only if
its hash is in the recipe.
"""

import io
import os
import re
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import replace
from itertools import zip_longest
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory

from styletransfer.errors import UserError
from styletransfer.formats.folders import FRAME, files_at
from styletransfer.job.sources import PICTURE_KEYS, SHAPE
from styletransfer.runs.carriers import carrier_of
from styletransfer.runs.recipe import carried, default_config, hardware_of, settings_in
from styletransfer.settings import ASSETS
from styletransfer.settings.changes import with_values
from styletransfer.settings.registry import Command, commands
from styletransfer.settings.schemas import keys_marked, named_files
from styletransfer.system.files import sha256


def verified(path: Path, recipe: Mapping[str, str], given: list[str]) -> str:
    """Paint a picture or film again from its recipe; return in a few words what differs.

    `given`, the setting `inputs`, lists files and folders in which to look for input pictures too.
    (UserError if the recipe cannot be followed.)
    """
    name, values = settings_in(recipe)
    command, default = commands()[name], default_config(name, is_pair="style_source" in values)
    for key in keys_marked(command.schema, "path"):
        hashes = re.findall(r"\b[0-9a-f]{64}\b", recipe.get(f"sha256 of {key}", ""))
        value = values.get(key, attrgetter(key)(default) if hashes else None)
        if names := named_files(command.schema, key, value):
            values[key] = _found(command, key, names, hashes, path, given)
    with TemporaryDirectory() as folder:
        again = Path(folder, f"again{path.suffix}")
        config = replace(with_values(default, values), output=str(again))
        with redirect_stdout(io.StringIO()):
            command(config, Path(folder, "run"))
        said, here = _difference(path, again), hardware_of(carried(again))
    there = hardware_of(recipe)
    return said if here == there else f"{said}; it was painted on {there}, and again on {here}"


def _found(
    command: Command, key: str, names: list[str], hashes: list[str], path: Path, given: list[str]
) -> str | list[str]:
    """Return the paths for the setting `key`; its files are found by their SHA-256 `hashes`.

    For a folder of frames, or a run of several files, the result is the folder. `path` is the file
    with the recipe, and `given` is the setting `inputs`. The function looks for files in `given`,
    and for files with one of `names` among the bundled files. It also looks for pictures and runs
    with these names in the folder of `path` and in the current folder. Two values have no hash and
    are returned unchanged: an aspect ratio, such as 4:3, and the name of a network's style, if it
    is no path. (UserError if a file is not found.)
    """
    is_name = key in keys_marked(command.schema, "named")
    is_name = is_name and not {*names[0]} & {*"/\\~"} and not os.path.lexists(names[0])
    if not hashes and (is_name or SHAPE.fullmatch(names[0])):
        return names[0]
    frames = [FRAME.fullmatch(name) for name in names]
    last = {Path(name).name for name in (*names, *(frame[1] for frame in frames if frame))}
    near = [file for file in ASSETS.rglob("*") if file.name in last] + [path.parent] * (
        key == "run"
    )
    if key in (*PICTURE_KEYS, "input", "run"):
        near += [place / name for place in (path.parent, Path()) for name in last]
    files = [file for place in (*given, *map(str, near)) for file in files_at(place)]
    known = {sha256(file): file for file in files if os.path.isfile(file)}
    if len(hashes) < len(names) or not known.keys() >= {*hashes}:
        what = "with the recipe's hash" if hashes else "because the recipe has no hash of it"
        raise UserError(f"cannot find {key}={names[0][:80]!r} {what}; name it with inputs=")
    found = [known[digest] for digest in hashes]
    if found[1:] and key in ("content", "run"):  # return the folder of the frames, or of the run
        return os.path.dirname(found[0])
    if len(found) == len(names):  # a frame is named by its film, as film.mp4:12
        named = zip(found, names, frames, strict=True)
        found = [
            f"{file}:{frame[2]}" if frame and Path(file).name != Path(name).name else file
            for file, name, frame in named
        ]
    return found if found[1:] else found[0]


def _difference(path: Path, again: Path) -> str:
    """Return, in a few words, how much the pixels of two pictures or films differ."""
    if path.read_bytes() == again.read_bytes():
        return "the same bytes"
    apart, images = [], carrier_of(path).images
    for ours, theirs in zip_longest(images(path), images(again)):
        if ours is None or theirs is None or ours.shape != theirs.shape:
            return "another size or number of frames"
        levels = 255 * (ours - theirs).abs()
        apart.append((float(levels.max()), float(levels.mean())))
    most, mean = max(most for most, _ in apart), sum(mean for _, mean in apart) / len(apart)
    if most == 0:
        return "the same pixels, in a file of other bytes"
    return f"pixels that differ by at most {most:.3g} levels of 255, on average by {mean:.2g}"
