"""Recipes: a recipe holds what a picture or a film depends on.

These are the settings, the hashes of input files, and versions. It is stored beside the result
(`run.json`, `film.json`) and in every checkpoint. Resuming compares it with the new recipe.
"""

import logging
import os
from collections.abc import Collection, Mapping
from dataclasses import is_dataclass
from operator import attrgetter
from typing import Any

import torch

from styletransfer import __version__
from styletransfer.pictures import files_at
from styletransfer.settings import each
from styletransfer.settings.schemas import keys, named_files, path_keys
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
