"""Recipes: a recipe holds what a picture or a film depends on.

These are the settings, the hashes of input files, and versions. A recipe is stored with the result
(`run.json`, `film.json`) and in every checkpoint. Resuming compares it with the new recipe.

A picture or film has its recipe as text: the command, and hashes of the inputs, no folders. The
text is JSON, in an XMP packet (metadata), which every picture format can hold, or in the comment of
a film. The text depends on nothing but the recipe.
"""

import json
import logging
import os
from collections.abc import Collection, Mapping
from dataclasses import is_dataclass
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any

import torch
from omegaconf import OmegaConf

from styletransfer import __version__
from styletransfer.pictures.formats import files_at
from styletransfer.pictures.images import SOURCE, xmp_of
from styletransfer.runs.carriers import LONGEST
from styletransfer.runs.record import FREE_KEYS
from styletransfer.settings import ASSETS, each
from styletransfer.settings.compose import settings_of
from styletransfer.settings.registry import commands
from styletransfer.settings.schemas import keys, named_files, path_keys
from styletransfer.settings.values import command_line, override
from styletransfer.system.files import sha256

logger = logging.getLogger(__name__)

Recipe = dict[str, Any]


def recipe(config: Any, free: Collection[str] = (), **facts: Any) -> Recipe:
    """Return the recipe of a result as plain values (UserError: a file cannot be read).

    `config` holds the settings of any command. Keys in `free` do not change the result, so their
    files are not read. `facts`, such as device="cpu", change only the last bits of the result.
    """
    values = settings(config, free)
    return {
        "version": __version__,
        "config": values,
        "files": _hashes(type(config), values, free),
        "torch": str(torch.__version__),
        "threads": torch.get_num_threads(),
        **facts,
    }


def settings(config: Any, free: Collection[str] = ()) -> dict[str, Any]:
    """Return key -> value for every key, such as "optimizer.name"; file names as full paths."""
    schema = type(config)
    values = {
        key: attrgetter(key)(config) for key, field in keys(schema) if not is_dataclass(field.type)
    }
    if values.get("output") is not None:
        values["output"] = os.path.abspath(values["output"])
    return _with_full_paths(schema, values, free)


def _with_full_paths(
    schema: type[Any], values: Mapping[str, Any], free: Collection[str]
) -> dict[str, Any]:
    """Return key -> value with full paths for all files and folders that exist."""
    full = dict(values)
    for key in full.keys() & set(path_keys(schema)) - set(free):
        existing = {name for name in named_files(schema, key, full[key]) if os.path.exists(name)}
        paths = [os.path.realpath(name) if name in existing else name for name in each(full[key])]
        full[key] = paths if isinstance(full[key], list | tuple) else next(iter(paths), None)
    return full


def _hashes(
    schema: type[Any], config: Mapping[str, Any], free: Collection[str]
) -> dict[str, list[str]]:
    """Return key -> the SHA-256 of each file of the key; a folder counts as its pictures."""
    hashes = {
        key: [
            sha256(path)
            for name in named_files(schema, key, config.get(key))
            for path in files_at(name)
            if os.path.isfile(path)
        ]
        for key in path_keys(schema)
        if key not in free
    }
    return {key: value for key, value in hashes.items() if value}


def text_of(name: str, recipe: Recipe, *more: str) -> str:
    """Return the text that a picture or film carries, which the command `name` makes.

    `more` are further KEY=VALUE words of the command. A text that would be too long for a picture
    file, as with hundreds of styles, is left out with a warning: the result is then empty.
    """
    paths, default = path_keys(commands()[name].schema), command_defaults(name)
    words = [
        override(key, _without_folder(value) if key in paths else value)
        for key, value in recipe["config"].items()
        if key not in FREE_KEYS and value != default[key]
    ]
    if recipe["config"].get("style_source"):
        words.insert(0, "experiment=null")  # the words have all that the preset set
    carried = {"command": command_line([*words, *more], name), "version": recipe["version"]}
    carried |= {f"sha256 of {key}": " ".join(hashes) for key, hashes in recipe["files"].items()}
    if "steered" in recipe:
        carried["steered"] = "settings changed during the run; the command has the last ones"
    carried["digital source type"] = SOURCE
    text = json.dumps(carried)
    if len(xmp_of(text)) > LONGEST:
        logger.warning("the recipe is too long for a picture file, which is written without it")
        return ""
    return text


def metadata(name: str, recipe: Recipe, *more: str) -> bytes:
    """Return `text_of` the same arguments as an XMP packet."""
    return xmp_of(text_of(name, recipe, *more))


def default_config(name: str) -> Any:
    """Return the settings of the command `name` when nothing is typed."""
    command = commands()[name]
    given: Any = OmegaConf.load(command.folder / f"{name}.yaml")
    own = OmegaConf.masked_copy(given, given.keys() - {"defaults", "hydra"})
    merged: Any = OmegaConf.merge(command.schema, own)
    return settings_of(merged) if own else command.schema()


@cache
def command_defaults(name: str) -> dict[str, Any]:
    """Return key -> default value of the command `name`."""
    return settings(default_config(name))


def _without_folder(value: Any) -> Any:
    """Return one or several paths without their folders; a bundled picture as `content/NAME`."""
    if isinstance(value, list):
        names = [_without_folder(path) for path in value]
        return names[0] if len(names) == 1 else names
    bundled = f"{os.path.realpath(ASSETS)}{os.sep}"
    return str(value).removeprefix(bundled) if str(value).startswith(bundled) else Path(value).name
