"""A config from keys and values, and changes of one whose run is under way."""

import os
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from operator import attrgetter
from typing import Any, TypeVar

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from styletransfer.config import ChangeConfig, StyleTransferConfig, TrainConfig
from styletransfer.config.commands import CONFIGS
from styletransfer.errors import UserError
from styletransfer.settings.command_line import literal
from styletransfer.settings.schemas import (
    GROUPS,
    check,
    check_choice,
    explain,
    flat,
    keys,
    mapping_keys,
    path_keys,
    unknown_key,
)

Config = TypeVar("Config", bound=StyleTransferConfig)

# What a run is of, where it began, and where it is made.
FIXED = ("content", "init", "seed", "device", "precision", "output")


def with_values(config: Config, values: Mapping[str, Any]) -> Config:
    """Return settings of which some keys have other values.

    Args:
        config: stays as it is.
        values: by their keys, such as "objective.content_weight", or nested; "features",
            "loss_mode" and "optimizer" may name one of their presets. Python's own values or
            NumPy's; texts are taken as they are.

    Raises:
        UserError: an unknown key, or a value of another type.
    """
    schema = type(config)
    mappings = {key: values[key] for key in mapping_keys(schema) if key in values}
    others = flat({key: value for key, value in values.items() if key not in mappings})
    # A preset comes first, so that keys of its group may differ from it.
    asked = dict(sorted(others, key=lambda pair: pair[0] not in GROUPS)) | mappings
    known = [key for key, _ in keys(StyleTransferConfig)]
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
    except (OmegaConfBaseException, ValueError) as error:
        raise UserError(explain(error, "train")) from error
    for key in asked:
        owner, _, name = key.rpartition(".")
        setattr(attrgetter(owner)(result) if owner else result, name, attrgetter(key)(parsed))
    check(result)
    return result


def changed(config: Config, values: Mapping[str, Any]) -> Config:
    """Return `with_values` of a run under way (UserError: also a key that cannot change then)."""
    check_can_change(values)
    return with_values(config, values)


def check_can_change(asked: Iterable[str]) -> None:
    """Check that none of some keys is fixed as long as a run lasts (UserError: one is)."""
    of_a_picture = dict(keys(StyleTransferConfig))
    only_once = {key for key, _ in keys(TrainConfig) if key not in of_a_picture}
    for key in asked:
        if key in only_once.union(FIXED):
            raise UserError(f"{key} cannot change during a run; start another one")


def in_turn(config: Config, changes: list[ChangeConfig]) -> list[Config]:
    """Return the settings that each change makes of those before it (UserError: one cannot)."""
    settings, before = [], 0
    for change in changes:
        if change.after < before:
            raise UserError(f"changes: after={change.after} must be {before} or more, in order")
        before = change.after
        config = changed(config, change.set)
        settings.append(config)
    return settings


def with_change(changes: list[ChangeConfig], change: ChangeConfig) -> list[ChangeConfig]:
    """Return changes with one more; two after the same step are one."""
    if changes and changes[-1].after == change.after:
        return [*changes[:-1], replace(changes[-1], set=changes[-1].set | change.set)]
    return [*changes, change]


def plain(key: str, value: Any) -> Any:
    """Return a value as OmegaConf takes it, its texts escaped (UserError: it is to be a file)."""
    if isinstance(value, Mapping):
        return {name: plain(key, one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(key, one) for one in value]
    if isinstance(value, str | os.PathLike):
        return literal(os.fspath(value))
    if value is not None and key in path_keys(StyleTransferConfig):
        raise UserError(f"{key} is a {type(value).__name__}; give a path")
    return value.tolist() if hasattr(value, "tolist") else value
