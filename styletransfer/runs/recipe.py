"""Recipes: a recipe is a dict of all values that a picture or a film depends on.

`train` stores it in `run.json` and in the checkpoint, `film` in `film.json`; a run that is resumed
compares the stored recipe with that of the new command line.

A picture or film file also holds its recipe, as a JSON text: a command line with the settings that
are not defaults (paths without folders), the version, and the hashes of the inputs. In a picture,
the text is in an XMP packet, metadata that every picture format can hold; in a film, it is the
metadata field "comment".
"""

import json
import logging
import os
import shlex
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any

import torch
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import MISSING, OmegaConf

from styletransfer import __version__
from styletransfer.errors import UserError
from styletransfer.formats.folders import film_and_place
from styletransfer.job.job import InputFiles
from styletransfer.job.sources import files_read
from styletransfer.pictures.images import SOURCE, xmp_of
from styletransfer.runs.carriers import LONGEST, carrier_of
from styletransfer.runs.record import FREE_KEYS
from styletransfer.settings import ASSETS, each
from styletransfer.settings.compose import compose, settings_of
from styletransfer.settings.registry import commands
from styletransfer.settings.schemas import keys, keys_marked
from styletransfer.settings.values import command_line, for_hydra, override
from styletransfer.system.devices import hardware
from styletransfer.system.files import sha256

logger = logging.getLogger(__name__)

Recipe = dict[str, Any]
# Largest number of characters in a command line that is read from a recipe. Hydra's parser would
# take seconds to read a longer one.
REPEATED = 2**14


def recipe(
    config: Any,
    free: Collection[str] = (),
    read: InputFiles | None = None,
    device: torch.device | None = None,
    **facts: Any,
) -> Recipe:
    """Return the recipe of a result as plain values (UserError if a file cannot be read).

    `config` holds the settings of any command. `read` are its input files, by default all but those
    of the keys in `free`. `device` is where a network computed. `facts` are further entries.
    """
    files: dict[str, list[str]] = {}
    hashed = cache(sha256)  # several entries may be the same file, such as frames of one film
    for key, path in files_read(config, free) if read is None else read:
        if os.path.isfile(path):
            files.setdefault(key, []).append(hashed(path))
    return {
        "version": __version__,
        "config": settings(config, free),
        "files": files,
        "torch": str(torch.__version__),
        "threads": torch.get_num_threads(),
        **({} if device is None else {"device": str(device), **hardware(device)}),
        **facts,
    }


def settings(config: Any, free: Collection[str] = ()) -> dict[str, Any]:
    """Return key -> value for every key, such as "optimizer.name".

    A path that exists becomes absolute, with symbolic links resolved, unless its key is in `free`.
    The path `output` always becomes absolute.
    """
    values: dict[str, Any] = {}
    for key, field in keys(type(config)):
        if is_dataclass(field.type):
            continue
        value = attrgetter(key)(config)
        if key == "output" and value is not None:
            value = os.path.abspath(value)
        elif field.metadata.get("path") and key not in free:
            words = field.metadata.get("choices", ())
            full = [name if name in words else _full_path(name) for name in each(value)]
            value = full if isinstance(value, list | tuple) else next(iter(full), None)
        values[key] = value
    return values


def _full_path(name: str) -> str:
    film, place = film_and_place(name)
    if place:
        return f"{os.path.realpath(film)}:{place}"
    return os.path.realpath(name) if os.path.exists(name) else name


def text_of(name: str, recipe: Recipe, *more: str) -> str:
    """Return `recipe` as the JSON text that a picture or film made by the command `name` stores.

    `more` are further KEY=VALUE words of the command. If the text is too long for a picture file,
    for example with hundreds of styles, log a warning and return "".
    """
    schema = commands()[name].schema
    paths = keys_marked(schema, "path")
    default = command_defaults(name, is_pair=bool(recipe["config"].get("style_source")))
    words = [
        override(key, _without_folder(value) if key in paths else value, schema)
        for key, value in recipe["config"].items()
        if key not in FREE_KEYS and value != default[key]
    ]
    told = {"command": command_line([*words, *more], name), "version": recipe["version"]}
    told |= {f"sha256 of {key}": " ".join(hashes) for key, hashes in recipe["files"].items()}
    if "hardware" in recipe:
        told["hardware"] = f"{recipe['hardware']}, torch {recipe['torch']}"
    if "steered" in recipe:
        told["steered"] = "settings changed during the run; the command has the last ones"
    told["digital source type"] = SOURCE
    text = json.dumps(told)
    if len(xmp_of(text)) > LONGEST:
        logger.warning("the recipe is too long for a picture file, which is written without it")
        return ""
    return text


def hardware_of(recipe: Mapping[str, Any]) -> str:
    """Return the name of the accelerator that computed a result, or "a CPU" if there was none."""
    return str(recipe.get("hardware", "a CPU"))


def metadata(name: str, recipe: Recipe, *more: str) -> bytes:
    """Return an XMP packet that holds the text of `text_of`, or b"" if the text is empty."""
    return xmp_of(text_of(name, recipe, *more))


def default_config(name: str, *, is_pair: bool = False) -> Any:
    """Return the settings that the command `name` has if no KEY=VALUE word is typed.

    They include the values of its default preset: the one that the command's YAML file names, or,
    if `is_pair` (style_source is given), experiment=paired.
    """
    command = commands()[name]
    given: Any = OmegaConf.load(command.file) if command.file.exists() else OmegaConf.create()
    groups = [one for one in given.get("defaults", []) if not isinstance(one, str)]
    if is_pair or any(one.get("experiment") for one in groups):
        unset = {one.name: MISSING for one in fields(command.schema) if one.default == MISSING}
        unset |= {"style_source": None} if is_pair else {}
        words = [f"{key}=any" for key in unset]
        return replace(settings_of(compose(command, words)), **unset)
    own = OmegaConf.masked_copy(given, given.keys() - {"defaults", "hydra"})
    merged: Any = OmegaConf.merge(command.schema, own)
    return settings_of(merged) if own else command.schema()


@cache
def command_defaults(name: str, *, is_pair: bool = False) -> dict[str, Any]:
    """Return the settings of `default_config` as a dict: key -> value."""
    return settings(default_config(name, is_pair=is_pair))


def _without_folder(value: Any) -> Any:
    """Return the file names of one or several paths; for a bundled file, its path below assets/."""
    if isinstance(value, list):
        names = [_without_folder(path) for path in value]
        return names[0] if len(names) == 1 else names
    path, bundled = Path(value), os.path.realpath(ASSETS)
    return str(path.relative_to(bundled)) if path.is_relative_to(bundled) else path.name


def carried(path: Path) -> dict[str, str]:
    """Return the recipe that a picture or film file holds, as a dict: key -> text.

    The text of "command" is quoted for a shell. (UserError if there is no recipe, or a damaged
    one.)
    """
    text = carrier_of(path).recipe(path)[: LONGEST + 1]  # longer texts are never written
    try:
        recipe = json.loads(text)
        _, name, *words = shlex.split(str(recipe["command"]))
        texts = {key: str(text) for key, text in recipe.items()}
        return texts | {"command": command_line(words, name)}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"{path} carries no recipe of styletransfer, or a damaged one") from error


def settings_in(recipe: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    """Return the name of a recipe's command, and its KEY=VALUE words as a dict: key -> value.

    The recipe may come from anybody. So each word must be one that this module could have written:
    a key that can change the picture, and a value without functions or ${...}. (UserError if a word
    is not, or if the command cannot be repeated.)
    """
    _, name, *words = shlex.split(recipe["command"])
    command = commands().get(name)
    if command is None or not command.repeatable or "steered" in recipe:
        raise UserError(f"{name!r} cannot be repeated, or was steered: no command makes the same")
    if sum(map(len, words)) > REPEATED:
        raise UserError("the recipe's command is too long to be repeated")
    known, values = {*command_defaults(name)} - ({*FREE_KEYS} - {"stop_after"}), {}
    parser, schema = OverridesParser.create(), command.schema
    for word in words:
        try:
            read = for_hydra(word, schema)
            parsed = parser.parse_override(read)
            key, value = parsed.key_or_group, parsed.value()
            is_ours = key in known and for_hydra(override(key, value, schema), schema) == read
        except (HydraException, ValueError, TypeError, LookupError, RecursionError):
            is_ours = False
        if not is_ours:
            raise UserError(f"the recipe holds {word[:80]!r}, which is no setting of a picture")
        values[key] = value
    return name, values
