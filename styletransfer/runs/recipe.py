"""What a run's picture depends on: `run.json` in its folder, and a part of every checkpoint."""

import logging
import os
from dataclasses import is_dataclass
from operator import attrgetter
from typing import Any

import torch

from styletransfer import __version__
from styletransfer.config import TrainConfig, each
from styletransfer.errors import UserError
from styletransfer.job.job import Job
from styletransfer.job.sources import PICTURE_KEYS
from styletransfer.pictures.folders import files_at
from styletransfer.runs.folder import FREE_KEYS
from styletransfer.settings.schemas import keys
from styletransfer.system.files import sha256

logger = logging.getLogger(__name__)

# Keys that may name files, beside words that have a meaning of their own.
FILE_KEYS = (*PICTURE_KEYS, "features.weights")


def describe(config: TrainConfig, job: Job) -> dict[str, Any]:
    """Return the settings, files and versions that the picture depends on, as plain values.

    Args:
        config: of the run, with its changes.
        job: what it is doing.

    Raises:
        UserError: a file cannot be read.
    """
    values = settings(config)
    return {
        "version": __version__,
        "config": values,
        "files": _files(values) | _files_of_changes(values["changes"]),
        "torch": str(torch.__version__),
        "threads": torch.get_num_threads(),
        "processes": job.processes.count,
        "device": str(job.device),
        "precision": job.precision,
    }


def settings(config: TrainConfig) -> dict[str, Any]:
    """Return key -> value for every key, such as "optimizer.name"; files by their full path."""
    values = {
        key: attrgetter(key)(config)
        for key, field in keys(type(config))
        if not is_dataclass(field.type)
    }
    if values["output"] is not None:
        values["output"] = os.path.abspath(values["output"])
    values["changes"] = [
        {"after": change.after, "set": _with_full_paths(change.set)} for change in config.changes
    ]
    return _with_full_paths(values)


def _with_full_paths(values: dict[str, Any]) -> dict[str, Any]:
    """Return key -> value with the full paths of files."""
    full = dict(values)
    for key in full.keys() & set(FILE_KEYS):
        if isinstance(full[key], list):
            full[key] = list(map(_full, full[key]))
        elif full[key] is not None:
            full[key] = _full(full[key])
    return full


def _full(path: str) -> str:
    """Return the full path of a file, and a word as it is."""
    return os.path.realpath(path) if os.path.exists(path) else path


def _files(values: dict[str, Any]) -> dict[str, list[str]]:
    """Return the hashes of the files that some keys name."""
    return {key: found for key in FILE_KEYS if (found := _hashes(values.get(key)))}


def _files_of_changes(changes: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Return those of changes, as changes[0].style and the like."""
    return {
        f"changes[{n}].{key}": found
        for n, change in enumerate(changes)
        for key, found in _files(change["set"]).items()
    }


def _hashes(value: str | list[str] | None) -> list[str]:
    """Return the hash of each file that a key names, of a folder those of its pictures."""
    return [sha256(path) for name in each(value) for path in files_at(name) if os.path.isfile(path)]


def check_settings(theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    """Check that two results of `settings` are those of one picture.

    Raises:
        UserError: naming the first key that differs, and both values; or they know other keys.
    """
    if theirs.keys() != ours.keys():
        raise UserError("the run has the settings of another version; start afresh")
    for key in ours:
        if key not in FREE_KEYS and theirs[key] != ours[key]:
            raise UserError(
                f"{key}={ours[key]} differs from the run's own {key}={theirs[key]}; leave it "
                "out to go on, or choose another folder with hydra.run.dir=FOLDER to start afresh"
            )


def check_same(theirs: dict[str, Any], ours: dict[str, Any], changes: int) -> None:
    """Check that a run may go on from what another with the description `theirs` has left.

    Another device or torch, or other threads or processes, only change the last bits: a warning.

    Args:
        theirs: of `describe`, then.
        ours: of `describe`, now.
        changes: how many of them had come into force then; later ones may differ.

    Raises:
        UserError: another version, setting or file, which the message names.
    """
    if theirs["version"] != ours["version"]:
        raise UserError(
            f"the run was begun by version {theirs['version']}, and this is {ours['version']}; "
            "go on with that one, or start afresh"
        )
    check_settings(_until(theirs["config"], changes), _until(ours["config"], changes))
    paths = _paths(_until(ours["config"], changes))
    for key in paths:
        if theirs["files"].get(key) != ours["files"].get(key):
            raise UserError(f"{key}={paths[key]} has changed since the run began; start afresh")
    for key in ("torch", "threads", "processes", "device", "precision"):
        if theirs[key] != ours[key]:
            logger.warning(
                "the run was begun with %s %s, and goes on with %s: the last bits may differ",
                key,
                theirs[key],
                ours[key],
            )


def _until(config: dict[str, Any], changes: int) -> dict[str, Any]:
    """Return the settings with so many of their changes."""
    return config | {"changes": config["changes"][:changes]}


def _paths(config: dict[str, Any]) -> dict[str, Any]:
    """Return what the keys that may name files say, under the names of `describe`."""
    paths = {key: config[key] for key in FILE_KEYS}
    for n, change in enumerate(config["changes"]):
        changed = change["set"].keys() & set(FILE_KEYS)
        paths |= {f"changes[{n}].{key}": change["set"][key] for key in changed}
    return paths
