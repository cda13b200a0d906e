"""What a run's picture depends on: `run.json` in its folder, and a part of every checkpoint."""

import logging
import os
from dataclasses import asdict
from typing import Any

import torch

from styletransfer import __version__
from styletransfer.config import StyleTransferConfig
from styletransfer.errors import UserError
from styletransfer.optimize.job import Job
from styletransfer.settings.schemas import flat
from styletransfer.system.files import sha256

logger = logging.getLogger(__name__)

# Keys that change no pixel, and may be given anew when a run goes on.
FREE_KEYS = ("output", "snapshot_every", "checkpoint_every", "resume", "dry_run")
# Keys that may name a file, beside words that have a meaning of their own.
FILE_KEYS = ("content", "style", "init", "features.weights")


def describe(job: Job) -> dict[str, Any]:
    """Return the settings, files and versions that the picture depends on, as plain values.

    Raises:
        UserError: a file cannot be read.
    """
    config = settings(job.config)
    files = {key: config[key] for key in FILE_KEYS if os.path.isfile(config[key])}
    return {
        "version": __version__,
        "config": config,
        "files": {key: sha256(path) for key, path in files.items()},
        "torch": str(torch.__version__),
        "threads": torch.get_num_threads(),
        "device": str(job.device),
        "precision": job.precision,
    }


def settings(config: StyleTransferConfig) -> dict[str, Any]:
    """Return key -> value for every key, such as "optimizer.name"; files by their full path."""
    values = dict(flat(asdict(config)))
    for key in FILE_KEYS:
        if os.path.exists(values[key]):
            values[key] = os.path.realpath(values[key])
    if values["output"] is not None:
        values["output"] = os.path.abspath(values["output"])
    return values


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


def check_same(theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    """Check that a run may go on from what another with the description `theirs` has left.

    Another device or torch, or other threads, only change the last bits: a warning.

    Raises:
        UserError: another version, setting or file, which the message names.
    """
    if theirs["version"] != ours["version"]:
        raise UserError(
            f"the run was begun by version {theirs['version']}, and this is {ours['version']}; "
            "go on with that one, or start afresh"
        )
    check_settings(theirs["config"], ours["config"])
    for key, path in ((key, ours["config"][key]) for key in FILE_KEYS):
        if theirs["files"].get(key) != ours["files"].get(key):
            raise UserError(f"{key}={path} has changed since the run began; start afresh")
    for key in ("torch", "threads", "device", "precision"):
        if theirs[key] != ours[key]:
            logger.warning(
                "the run was begun with %s %s, and goes on with %s: the last bits may differ",
                key,
                theirs[key],
                ours[key],
            )
