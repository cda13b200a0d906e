"""Recipes: a recipe holds what a picture or a film depends on.

These are the settings, the hashes of input files, and versions. It is stored beside the result
(`run.json`, `film.json`) and in every checkpoint. Resuming compares it with the new recipe.
"""

import logging
import os
from collections.abc import Collection, Mapping
from dataclasses import is_dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

import torch

from styletransfer import __version__
from styletransfer.errors import UserError
from styletransfer.pictures.formats import files_at
from styletransfer.runs.folder import FREE_KEYS, RECORD, read_run
from styletransfer.settings import TrainConfig, each
from styletransfer.settings.schemas import keys, named_files, path_keys
from styletransfer.settings.values import with_values
from styletransfer.system.files import sha256

logger = logging.getLogger(__name__)

Recipe = dict[str, Any]
AFRESH = "start afresh in another folder: hydra.run.dir=FOLDER"


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


def check_settings(
    then: Mapping[str, Any], now: Mapping[str, Any], free: Collection[str] = ()
) -> None:
    """Raise UserError, with the key, if two results of `settings` differ in a key not in `free`."""
    if then.keys() != now.keys():
        raise UserError("the run has the settings of another version; start afresh")
    for key in now:
        if key not in free and then[key] != now[key]:
            raise UserError(
                f"{key}={now[key]} differs from the run's own {key}={then[key]}; go on with that "
                f"one, or {AFRESH}"
            )


def check_recipe(then: Recipe, now: Recipe, free: Collection[str] = ()) -> None:
    """Check that a result with the recipe `now` may continue one with the recipe `then`.

    Another device, torch version or number of threads changes only the last bits, and only causes
    a warning. Keys in `free` may differ. (UserError: the version of styletransfer, a setting or a
    file differs, and the message names it; or `then` is no recipe.)
    """
    try:
        if then["version"] != now["version"]:
            raise UserError(
                f"the run was begun by version {then['version']}, and this is {now['version']}; "
                "go on with that one, or start afresh"
            )
        check_settings(then["config"], now["config"], free)
        for key in sorted(then["files"].keys() | now["files"].keys()):
            if then["files"].get(key) != now["files"].get(key):
                raise UserError(
                    f"{key}={now['config'].get(key)} has changed since the run began; {AFRESH}"
                )
        for key in now:
            if key not in ("version", "config", "files") and then[key] != now[key]:
                logger.warning(
                    "the run was begun with %s %s, and goes on with %s: the last bits may differ",
                    *(key, then[key], now[key]),
                )
    except (LookupError, TypeError, AttributeError) as error:
        raise UserError("what is there is no run's record of this version; start afresh") from error


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


def own_settings(config: TrainConfig, folder: Path, typed: Collection[str]) -> TrainConfig:
    """Return the settings of the run in `folder`, to resume it.

    `config` holds the settings of the command line, and `typed` the keys that were typed there;
    those in FREE_KEYS are copied from `config`. (UserError: `folder` holds no run, or another key
    was typed.)
    """
    fixed = [name for name in typed if name not in FREE_KEYS and not name.startswith("hydra")]
    if fixed:
        raise UserError(
            f"resume={folder} goes on with the run's own settings; leave {fixed[0]}= out, or start "
            "afresh without resume="
        )
    recorded = read_run(folder).settings
    try:
        own = with_values(TrainConfig(), recorded)
    except UserError as error:
        message = f"{folder / RECORD} was written by another version; start afresh"
        raise UserError(message) from error
    free = {key: getattr(config, key) for key in FREE_KEYS if key in typed}
    return replace(own, **free | {"resume": "auto"})


def finished_picture(config: TrainConfig, folder: Path) -> Path | None:
    """Return the path of a finished run's pastiche, or None if `folder` holds no finished run.

    (UserError: that run has other settings.)
    """
    if config.resume != "auto" or not (folder / RECORD).exists():
        return None
    run = read_run(folder)
    check_settings(run.settings, settings(config, FREE_KEYS), FREE_KEYS)
    return run.output if run.status == "finished" and run.output.exists() else None
