"""Changing the settings of a run that is under way."""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from operator import attrgetter
from typing import Any, TypeVar

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from styletransfer.config import ChangeConfig, StyleTransferConfig, TrainConfig
from styletransfer.errors import UserError
from styletransfer.settings.check import check
from styletransfer.settings.messages import explain
from styletransfer.settings.paths import literal
from styletransfer.settings.schemas import (
    CONFIGS,
    GROUPS,
    check_choice,
    flat,
    keys,
    mapping_keys,
    path_keys,
    unknown_key,
)

Config = TypeVar("Config", bound=StyleTransferConfig)

# What a run is of, where it began, and where it is made.
FIXED = ("content", "init", "seed", "device", "precision", "output")


def changed(config: Config, values: Mapping[str, Any]) -> Config:
    """Return settings of which some have other values.

    Args:
        config: stays as it is.
        values: by their keys, such as "objective.content_weight"; "features", "loss_mode" and
            "optimizer" may name one of their presets.

    Raises:
        UserError: an unknown key, one that cannot change during a run, or a value of another type.
    """
    check_can_change(values)
    schema = type(config)
    known = [key for key, _ in keys(StyleTransferConfig)]
    mappings = {key: values[key] for key in mapping_keys(schema) if key in values}
    others = flat({key: value for key, value in values.items() if key not in mappings})
    asked, paths = dict(others) | mappings, path_keys(schema)
    node, result = OmegaConf.structured(schema), deepcopy(config)
    try:
        for key, value in asked.items():
            if key not in known:
                raise UserError(unknown_key(key, set(known) - set(FIXED)))
            _update(node, key, value, is_path=key in paths)
        found = OmegaConf.to_object(node)
    except (OmegaConfBaseException, ValueError) as error:
        raise UserError(explain(error, "train")) from error
    for key in asked:
        owner, _, name = key.rpartition(".")
        setattr(attrgetter(owner)(result) if owner else result, name, attrgetter(key)(found))
    check(result)
    return result


def check_can_change(asked: Iterable[str]) -> None:
    """Check that none of some keys is fixed as long as a run lasts.

    Raises:
        UserError: one is.
    """
    only_once = {key for key, _ in keys(TrainConfig)} - {
        key for key, _ in keys(StyleTransferConfig)
    }
    for key in asked:
        if key in only_once.union(FIXED):
            raise UserError(f"{key} cannot change during a run; start another one")


def in_turn(config: Config, changes: list[ChangeConfig]) -> list[Config]:
    """Return the settings that each of some changes makes of those before it.

    Raises:
        UserError: one cannot be made, or they are not in their order.
    """
    found, before = [], 0
    for change in changes:
        if change.after < before:
            raise UserError(f"changes: after={change.after} must be {before} or more, in order")
        before = change.after
        config = changed(config, change.set)
        found.append(config)
    return found


def with_change(changes: list[ChangeConfig], change: ChangeConfig) -> list[ChangeConfig]:
    """Return changes with one more; two after the same step are one."""
    if changes and changes[-1].after == change.after:
        return [*changes[:-1], replace(changes[-1], set=changes[-1].set | change.set)]
    return [*changes, change]


def _update(node: DictConfig, key: str, value: Any, *, is_path: bool) -> None:
    """Set a key to a value, or a group to one of its presets."""
    if key in GROUPS:
        check_choice(key, value)
        value = OmegaConf.load(CONFIGS / key / f"{value}.yaml")
    elif is_path:
        value = _literal(value)
    OmegaConf.update(node, key, value, merge=key not in mapping_keys(StyleTransferConfig))


def _literal(value: Any) -> Any:
    if isinstance(value, list):
        return [_literal(each) for each in value]
    return literal(value) if isinstance(value, str) else value
