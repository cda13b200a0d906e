"""What Hydra and OmegaConf complain about, in one line."""

from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf.errors import (
    ConfigAttributeError,
    ConfigKeyError,
    MissingMandatoryValue,
    OmegaConfBaseException,
)

from styletransfer.settings.schemas import keys, schema_of, unknown_key

# Launchers of sweeps, and the extra of ours that brings each.
LAUNCHERS = {
    "joblib": "sweep",
    "submitit_local": "sweep",
    "submitit_slurm": "sweep",
    "ray": "ray",
}


def explain(error: Exception, config_name: str) -> str:
    """Say in one line what is wrong with the command line or the config.

    Args:
        error: raised by Hydra or OmegaConf while they compose or read a config.
        config_name: of the file under configs/.
    """
    if isinstance(error, MissingConfigException) and error.options is not None:
        group, _, name = str(error.missing_cfg_file).rpartition("/")
        if group == "hydra/launcher" and name in LAUNCHERS:
            extra = f"pip install 'styletransfer[{LAUNCHERS[name]}]'"
            return f"hydra/launcher={name} is not installed; run: {extra}"
        return f"unknown {group} {name!r}; there are {', '.join(error.options) or 'none'}"
    if isinstance(error, OverrideParseException):
        return (
            f"cannot understand {error.override!r}; write KEY=VALUE, with quotes around a value "
            "that holds special characters: 'KEY=\"a=b (1)\"'"
        )
    if isinstance(error, HydraException | OmegaConfBaseException):
        return _of_a_key(error, config_name)
    # All of it: the last lines of PyYAML's say in which file and line.
    reason = " ".join(str(error).split()) or type(error).__name__
    if reason.startswith("Config group override"):
        return f"{reason[0].lower()}{reason[1:]}; see --help for the names of each group"
    cause = f": {' '.join(str(error.__cause__).split())}" if error.__cause__ else ""
    return f"{reason}{cause}"


def _of_a_key(error: Exception, config_name: str) -> str:
    cause = error.__cause__ if isinstance(error.__cause__, OmegaConfBaseException) else error
    key = getattr(cause, "full_key", None)
    if key and isinstance(cause, ConfigAttributeError | ConfigKeyError):
        return unknown_key(key, (name for name, _ in keys(schema_of(config_name))))
    if key and isinstance(cause, MissingMandatoryValue):
        return f"{key} is missing; give {key}=VALUE"
    reason = _reason(cause)
    if reason.startswith("Ambiguous value"):
        reason += "; write [a,b] for a list, '\"a,b\"' for a value with a comma, or add --multirun"
    return f"{key}: {reason}" if key else reason


def _reason(error: Exception) -> str:
    """Return the first line of a message, and the next where that only announces it."""
    first, *rest = [line.strip() for line in str(error).splitlines()] or [type(error).__name__]
    return f"{first} {rest[0]}" if first.endswith(":") and rest else first
