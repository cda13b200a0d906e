"""What the schemas cannot say of a setting: file names as typed, and numbers that fit a tensor."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_origin

from styletransfer.errors import UserError
from styletransfer.settings.paths import expanded

LARGEST = 2**63 - 1
"""Integers beyond it fit no tensor."""
# What a list of each type is called.
LISTS: dict[Any, str] = {
    list[str]: "a list of names",
    list[float]: "a list of numbers",
    list[int]: "a list of whole numbers",
}


def check(settings: Any, prefix: str = "") -> None:
    """Expand file names in place, and refuse numbers and lists that no code could take."""
    for field in fields(settings):
        value, key = getattr(settings, field.name), prefix + field.name
        if "each" in field.metadata:
            setattr(settings, field.name, _one_or_more(key, value, field.metadata))
        elif is_dataclass(value):
            check(value, f"{key}.")
        elif get_args(field.type)[1:] == (int,):
            setattr(settings, field.name, _numbered(key, value))
        elif get_origin(field.type) is list:
            if not _fits(value, field.type):  # OmegaConf lets lists within lists pass
                raise UserError(f"{key}={value} must be {LISTS.get(field.type, 'a list')}")
            for entry in filter(is_dataclass, value):
                check(entry, f"{key}.")
            _check_integers(key, value)
        elif isinstance(value, int):
            _check_integers(key, value)
        elif isinstance(value, str) and "path" in field.metadata:
            setattr(settings, field.name, expanded(value))


def _numbered(key: str, value: Mapping[Any, Any]) -> dict[str, int]:
    """Return a mapping to whole numbers; of a key such as 1, Hydra makes a number.

    Raises:
        UserError: a value that is none.
    """
    for name, number in value.items():
        if not _fits(number, int):  # OmegaConf lets lists pass
            raise UserError(f"{key}.{name}={number} must be a whole number")
        _check_integers(f"{key}.{name}", number)
    return {str(name): number for name, number in value.items()}


def _one_or_more(key: str, value: Any, metadata: Mapping[str, Any]) -> Any:
    """Return one value or a list of them, of the kind that the schema names, file names expanded.

    Raises:
        UserError: another kind.
    """
    kind = metadata["each"]
    known = "a number" if kind is float else "a file name"
    _check_integers(key, value)
    found = []
    for entry in value if isinstance(value, list) else [value]:
        if not _fits(entry, kind) and (entry is not None or isinstance(value, list)):
            raise UserError(f"{key}={value} must be {known}, or a list of them in brackets")
        found.append(expanded(entry) if isinstance(entry, str) else entry)
    return found if isinstance(value, list) else found[0]


def _fits(value: Any, kind: Any) -> bool:
    """Tell whether a value is of a type as the schemas have them, such as list[list[int]]."""
    if get_origin(kind) is list:
        (inner,) = get_args(kind)
        return isinstance(value, list) and all(_fits(entry, inner) for entry in value)
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, (int, float) if kind is float else kind)


def _check_integers(key: str, value: Any) -> None:
    if isinstance(value, list):
        for entry in value:
            _check_integers(key, entry)
    elif isinstance(value, int) and abs(value) > LARGEST:
        raise UserError(f"{key}={value} is too large; it must be below 2^63")
