"""Explains errors of Hydra and OmegaConf in one line; imported only after an error."""

import re

from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf.errors import (
    InterpolationResolutionError,
    MissingMandatoryValue,
    OmegaConfBaseException,
)

from styletransfer.errors import pip_install

# Hydra's launcher of sweeps -> the extra of this package that installs the launcher.
LAUNCHERS = dict.fromkeys(("joblib", "submitit_local", "submitit_slurm"), "sweep") | {"ray": "ray"}


def explain(error: Exception) -> str:
    """Return one line that says what is wrong with a command line or a config."""
    if isinstance(error, MissingConfigException) and error.options is not None:
        group, _, name = str(error.missing_cfg_file).rpartition("/")
        if group == "hydra/launcher" and name in LAUNCHERS:
            advice = pip_install(LAUNCHERS[name])
            return f"hydra/launcher={name} is not installed; run: {advice}"
        return f"unknown {group} {name!r}; there are {', '.join(error.options) or 'none'}"
    if isinstance(error, OverrideParseException):
        return (
            f"cannot understand {error.override!r}; write KEY=VALUE, with quotes around a value "
            "that holds special characters: 'KEY=\"a=b (1)\"'"
        )
    if isinstance(error, InterpolationResolutionError) and (failed := _of_the_system(error)):
        return (
            f"cannot write {failed.filename}: {failed.strerror}; choose a folder with "
            "hydra.run.dir=PATH, or hydra.sweep.dir=PATH for a sweep"
        )
    if isinstance(error, AssertionError | AttributeError):
        return (
            "Hydra cannot use one of its own settings; check the words that begin with hydra, and "
            "hydra: in presets"
        )
    if isinstance(error, HydraException | OmegaConfBaseException | OverflowError):
        return _of_a_key(error)
    if isinstance(error, RecursionError):
        return "a preset names itself in its defaults list"
    # The last lines of PyYAML's messages name the file and the line, so all lines are kept.
    reason = " ".join(str(error).split()) or type(error).__name__
    if reason.startswith("Config group override"):
        return f"{reason[0].lower()}{reason[1:]}; see --help for the names of each group"
    cause = f": {' '.join(str(error.__cause__).split())}" if error.__cause__ else ""
    return f"{reason}{cause}"


def _of_the_system(error: BaseException | None) -> OSError | None:
    """Return the OSError that caused an error, or None."""
    while error is not None and not isinstance(error, OSError):
        error = error.__cause__ or error.__context__
    return error


def _of_a_key(error: Exception) -> str:
    cause = error.__cause__ if isinstance(error.__cause__, OmegaConfBaseException) else error
    found = re.search(r"full_key: (\S+)", str(cause))  # an OverflowError has no attribute full_key
    key = getattr(cause, "full_key", found and found[1])
    if key and isinstance(cause, MissingMandatoryValue):
        return f"{key} is missing; give {key}=VALUE"
    reason, *rest = [line.strip() for line in str(cause).splitlines()] or [type(cause).__name__]
    if reason.endswith(":") and rest:  # the first line only introduces the next line
        reason = f"{reason} {rest[0]}"
    if "Key 'experiment' not in" in reason:
        reason += "; the first line of a preset is # @package _global_, with no byte order mark"
    if group := re.match(r"Could not override '(\w+)'\. No match in the defaults", reason):
        return f"this command takes no {group[1]}=; leave it out, and see --help"
    if reason.startswith("Ambiguous value"):
        reason += "; write [a,b] for a list, '\"a,b\"' for a value with a comma, or add --multirun"
    return f"{key}: {reason}" if key else reason
