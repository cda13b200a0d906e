"""Print how a picture was made: `scripts/info.py PICTURE`; `verify=true` paints it again.

A recipe is text from a stranger. Only known settings are taken from it, and files only by hash.
"""

import importlib
import io
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import replace
from itertools import zip_longest
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory

from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.films.read import Film
from styletransfer.job.load import PICTURE_KEYS, SHAPE
from styletransfer.pictures import FILM_EXTENSIONS, files_at, images
from styletransfer.runs.metadata import carried, default_config, lines_of, parsed, settings_in
from styletransfer.settings import ASSETS, each
from styletransfer.settings.commands import module, schema_of
from styletransfer.settings.pictures import InfoConfig
from styletransfer.settings.schemas import named_files, path_keys
from styletransfer.settings.values import with_values
from styletransfer.system.files import sha256


def main(config: InfoConfig, folder: Path) -> None:
    """Print the recipe that a picture carries, a line for each key (UserError: it has none)."""
    path = Path(config.picture)
    is_film = path.suffix.lower() in FILM_EXTENSIONS
    recipe = parsed(_comment(path), path) if is_film else carried(path)
    print(*lines_of(recipe), sep="\n", flush=True)
    if config.verify:
        try:
            print(f"verify: {_verified(path, recipe, each(config.inputs))}")
        except UserError as error:  # it may quote the stranger
            raise UserError("".join(filter(str.isprintable, str(error)))) from error


def _verified(path: Path, recipe: Mapping[str, str], given: list[str]) -> str:
    """Paint a picture again from its recipe; return a few words about the difference.

    UserError: a setting is not a picture's, an input is missing, or the settings do not work.
    """
    if "steered" in recipe:
        raise UserError("the settings were changed during the run: no command repeats it")
    name, values = settings_in(recipe)
    default, schema = default_config(name), schema_of(name)
    for key in path_keys(schema):
        hashes = re.findall(r"\b[0-9a-f]{64}\b", recipe.get(f"sha256 of {key}", ""))
        names = named_files(
            schema, key, values.get(key, attrgetter(key)(default) if hashes else None)
        )
        if names:
            values[key] = _found(key, names, hashes, path, given)
    config = with_values(default, values)
    with TemporaryDirectory() as folder:
        again = Path(folder, f"again{path.suffix}")
        with redirect_stdout(io.StringIO()):
            # As the console does; a command imports no other.
            importlib.import_module(module(name)).main(
                replace(config, output=str(again)), Path(folder, "run")
            )
        return _difference(path, again)


def _found(
    key: str, names: list[str], hashes: list[str], path: Path, given: list[str]
) -> str | list[str]:
    """Return the files with these hashes; they are looked for as InfoConfig.inputs says.

    A style's name or a shape, such as 4:3, has no hash and is returned. (UserError: none is found.)
    """
    is_word = not hashes and (key == "style" or SHAPE.fullmatch(names[0]) is not None)
    if is_word and len(names) == 1 and not os.path.lexists(names[0]):
        return names[0]
    places = [path.parent, Path()] if key in (*PICTURE_KEYS, "input", "run") else []
    near = [place / Path(name).name for place in places for name in names]
    near += [ASSETS / name for name in names] + [path.parent] * (key == "run")
    files = [file for one in (*given, *map(str, near)) for file in files_at(one)]
    known = {sha256(file): file for file in files if os.path.isfile(file)}
    missing = [digest for digest in hashes if digest not in known]
    if missing or len(hashes) < len(names):
        which = f" with SHA-256 {missing[0][:12]}..." if missing else ", which has no hash"
        raise UserError(f"cannot find {key}={names[0][:80]!r}{which}; name it with inputs=")
    found = [known[digest] for digest in hashes]
    if found[1:] and key in ("content", "run"):  # the folder of frames, or of a run
        return os.path.dirname(found[0])
    return found if found[1:] else found[0]


def _difference(path: Path, again: Path) -> str:
    """Return how far the pixels of two pictures or films are apart, in a few words."""
    if path.read_bytes() == again.read_bytes():
        return "painted again, it has the same bytes"
    most = mean = 0.0
    count = 0
    for ours, theirs in zip_longest(_layers(path), _layers(again)):
        if ours is None or theirs is None or ours.shape != theirs.shape:
            return "painted again, it has another size or number of frames"
        levels = 255 * (ours - theirs).abs()
        count += 1
        most, mean = max(most, float(levels.max())), mean + float(levels.mean())
    mean /= count
    return f"painted again, it differs by at most {most:.3g} levels of 255, on average {mean:.2g}"


def _layers(path: Path) -> Iterator[Tensor]:
    """Yield the colours and the transparency of a picture, or the frames of a film."""
    if path.suffix.lower() in (*FILM_EXTENSIONS, ".gif", ".apng"):
        with Film(path) as film:
            yield from (frame.image for frame in film.frames())
    else:
        picture = images.read(path)
        yield from (one for one in (picture.rgb, picture.alpha) if one is not None)


def _comment(path: Path) -> str:
    with Film(path) as film:
        return film.comment
