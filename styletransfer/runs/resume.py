"""Checks that a run may be resumed: its recipe is compared with that of the new command line."""

import logging
import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from styletransfer.errors import UserError
from styletransfer.runs.folder import RunFolder, read_run
from styletransfer.runs.recipe import Recipe, hardware_of, settings
from styletransfer.runs.record import CHECKPOINT, FREE_KEYS, RECORD
from styletransfer.settings import TrainConfig
from styletransfer.settings.changes import with_values
from styletransfer.settings.idle import typed
from styletransfer.system.files import sha256
from styletransfer.system.locks import locked, output_locked

logger = logging.getLogger(__name__)

AFRESH = "start afresh in another folder: hydra.run.dir=FOLDER"


def check_settings(
    then: Mapping[str, Any], now: Mapping[str, Any], free: Collection[str] = ()
) -> None:
    """Raise UserError if the keys of `then` and `now` differ, or the values of a key not in `free`.

    `then` are the settings of the recorded run, and `now` those with which it would continue. The
    values of `captured` may differ: in a finished run's record, `captured` says whether CUDA graphs
    were really used.
    """
    if then.keys() != now.keys():
        raise UserError("the run has the settings of another version; start afresh")
    for key in now:
        if key not in (*free, "captured") and then[key] != now[key]:
            raise UserError(
                f"{key}={now[key]} differs from the run's own {key}={then[key]}; go on with that "
                f"one, or {AFRESH}"
            )


def check_recipe(then: Recipe, now: Recipe, free: Collection[str] = ()) -> None:
    """Check that a result with the recipe `now` may continue one with the recipe `then`.

    Another device, precision, torch version or number of threads only causes a warning. Keys in
    `free` may differ. (UserError if the version of styletransfer, a setting or a file differs, and
    the message says which one; or `then` is no recipe.)
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
            begun = hardware_of(then) if key == "hardware" else then[key]
            if key not in ("version", "config", "files") and begun != now[key]:
                logger.warning(
                    "the run was begun with %s %s, and goes on with %s: the last bits may differ",
                    *(key, begun, now[key]),
                )
    except (LookupError, TypeError, AttributeError) as error:
        raise UserError("what is there is no run's record of this version; start afresh") from error


def continued(config: TrainConfig, folder: Path) -> tuple[TrainConfig, Path]:
    """Return the settings and the folder of the run that `config.resume` names.

    If `config.resume` is None or "auto", it names no folder, and the arguments are returned.
    """
    if config.resume in (None, "auto"):
        return config, folder
    folder = Path(config.resume)
    return own_settings(config, folder, typed()), folder


def own_settings(config: TrainConfig, folder: Path, typed: Collection[str]) -> TrainConfig:
    """Return the settings of the run in `folder`, to resume it.

    `config` holds the settings of the command line, and `typed` the keys that were typed there;
    typed keys in FREE_KEYS are copied from `config`. (UserError if `folder` holds no run, if
    another key was typed, or if `check_own` refuses the output.)
    """
    fixed = [name for name in typed if name not in FREE_KEYS and not name.startswith("hydra")]
    if fixed:
        raise UserError(
            f"resume={folder} goes on with the run's own settings; leave {fixed[0]}= out, or start "
            "afresh without resume="
        )
    run = read_run(folder)
    if run.status != "finished" and not (folder / CHECKPOINT).exists():
        logger.warning("%s holds no checkpoint; starting again at the first step", folder)
    try:
        own = with_values(TrainConfig(), run.settings)
    except UserError as error:
        message = f"{folder / RECORD} was written by another version; start afresh"
        raise UserError(message) from error
    free = {key: getattr(config, key) for key in FREE_KEYS if key in typed}
    if own.output is not None and "output" not in free:
        check_own(own.output, run)
    return replace(own, **free | {"resume": "auto"})


def check_own(output: str, run: RunFolder) -> None:
    """Raise UserError if a run would replace a file outside its folder that it has not written.

    A run's folder may come from somebody else, and its record may name any file of this user as the
    output.
    """
    if Path(os.path.realpath(output)).is_relative_to(os.path.realpath(run.folder)):
        return
    if os.path.exists(output) and (not run.output_hash or sha256(output) != run.output_hash):
        raise UserError(
            f"{output} is the output of {run.folder}, and the file there is not the run's own; "
            f"add output={output} to replace it, or name another output"
        )


def finished_picture(config: TrainConfig, folder: Path) -> Path | None:
    """Return the pastiche's path if `config.resume` is "auto" and `folder` holds a finished run.

    The result is None otherwise, or if that pastiche does not exist any more. (UserError if the run
    in `folder` has other settings.)
    """
    if config.resume != "auto" or not (folder / RECORD).exists():
        return None
    run = read_run(folder)
    check_settings(run.settings, settings(config, FREE_KEYS), FREE_KEYS)
    return run.output if run.status == "finished" and run.output.exists() else None


def tidy(folder: Path, picture: Path) -> None:
    """Remove the checkpoint and the lock files that a process, killed as it finished a run, left.

    Nothing is removed while another process holds a lock; that process removes the files itself.
    """
    with suppress(UserError, OSError), locked(folder), output_locked(picture):
        (folder / CHECKPOINT).unlink(missing_ok=True)
