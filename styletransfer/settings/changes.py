"""Changes settings from Python: for the API, for a resumed run, or during a run."""

import os
from collections.abc import Mapping
from copy import deepcopy
from operator import attrgetter
from typing import Any, TypeVar

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from styletransfer.errors import UserError
from styletransfer.settings import StyleTransferConfig, TrainConfig
from styletransfer.settings.registry import CONFIGS
from styletransfer.settings.schemas import (
    GROUPS,
    check_choice,
    check_values,
    flat,
    keys,
    keys_marked,
    mapping_keys,
    refusal,
    unknown_key,
)
from styletransfer.settings.values import literal

# Keys that `train` alone has: they say what a run stores and prints, not what it paints.
OF_A_RUN = {key for key, _ in keys(TrainConfig)} - {key for key, _ in keys(StyleTransferConfig)}
# Keys that cannot change during a run, in addition to those of OF_A_RUN.
FIXED = ("content", "init", "seed", "device", "precision", "output")
Config = TypeVar("Config")


def with_values(config: Config, values: Mapping[str, Any]) -> Config:
    """Return a copy of `config` with new values (UserError if a key is unknown or a value wrong).

    `values` maps keys such as "objective.content_weight" to values of Python or NumPy, and may be
    nested. For "features", "loss_mode" and "optimizer", the value may be the name of a preset.
    Texts are used literally, without interpolation.
    """
    schema = type(config)
    mappings = {key: values[key] for key in mapping_keys(schema) if key in values}
    others = flat({key: value for key, value in values.items() if key not in mappings})
    # Presets are applied first, so that keys of the same group can override a preset.
    asked = dict(sorted(others, key=lambda pair: pair[0] not in GROUPS)) | mappings
    known = [key for key, _ in keys(schema)]
    node, result = OmegaConf.structured(schema), deepcopy(config)
    try:
        for key, value in asked.items():
            if key not in known:
                raise UserError(unknown_key(key, known))
            if key in GROUPS:
                check_choice(key, value)
                value = OmegaConf.load(CONFIGS / key / f"{value}.yaml")
            else:
                value = plain(key, value)
            OmegaConf.update(node, key, value, merge=key not in mappings)
        parsed = OmegaConf.to_object(node)
    except (OmegaConfBaseException, ArithmeticError, ValueError, TypeError) as error:
        raise refusal(error) from error
    for key in asked:
        owner, _, name = key.rpartition(".")
        setattr(attrgetter(owner)(result) if owner else result, name, attrgetter(key)(parsed))
    check_values(result)
    return result


def plain(key: str, value: Any) -> Any:
    """Return a value in a form that OmegaConf accepts (UserError if `key` takes paths only)."""
    if isinstance(value, Mapping):
        return {name: plain(key, entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(key, entry) for entry in value]
    if isinstance(value, str | os.PathLike):
        return literal(os.fspath(value))
    if value is not None and key in keys_marked(StyleTransferConfig, "path"):
        raise UserError(f"{key} is a {type(value).__name__}; give a path")
    return value.tolist() if hasattr(value, "tolist") else value


def changed(config: Config, values: Mapping[str, Any]) -> Config:
    """Return `config` with new values (UserError if a value is wrong or a key cannot change)."""
    for key in values:
        if key in OF_A_RUN.union(FIXED):
            raise UserError(f"{key} cannot change during a run; start another one")
    return with_values(config, values)
