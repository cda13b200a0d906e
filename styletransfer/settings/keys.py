"""Functions that declare a key in a dataclass of settings, and the values that it may have."""

from dataclasses import field
from typing import Any, TypeVar

T = TypeVar("T")

# OmegaConf's mark for a key without a default, whose value the user has to give.
MISSING: Any = "???"

# Metadata: NUMBERS for a key that takes a number or a list of numbers, PATHS for one or more paths.
NUMBERS = {"each": float}
# With `PATHS | {"named": True}`, a value may also be a name, such as that of a network's style.
PATHS = {"each": str, "path": True}


def choice(*words: str, idle: str = "") -> str:
    """Declare a key whose value is one of `words`, by default the first. `idle`: see `number`."""
    declared: str = field(default=words[0], metadata={"choices": words, "idle": idle})
    return declared


def names(*default: str, idle: str) -> list[str]:
    """Declare a key for a list of names. `idle`: see `number`."""
    declared: list[str] = field(default_factory=lambda: list(default), metadata={"idle": idle})
    return declared


def number(default: T, interval: str, *, several: bool = False, idle: str = "") -> T:
    """Declare a key for a number, or for a list of numbers, in an interval such as "[0, 1)".

    A limit beside a square bracket is allowed, a limit beside a round bracket is not. With
    `several`, the key takes one number or a list of numbers. `idle` says when the key has no
    effect, see `styletransfer.settings.idle`.
    """
    metadata = {"interval": interval, "idle": idle} | (NUMBERS if several else {})
    if isinstance(default, list):
        declared: T = field(default_factory=lambda: list(default), metadata=metadata)  # type: ignore[assignment]
    else:
        declared = field(default=default, metadata=metadata)
    return declared


def path(
    default: T,
    *,
    positional: bool = False,
    swept: bool = False,
    written: bool = False,
    piped: bool = False,
    paired: bool = False,
    words: tuple[str, ...] = (),
    idle: str = "",
) -> T:
    """Declare a key whose value is a path. On the command line, the path needs no quotes for Hydra.

    Args:
        default: the key's default.
        positional: the path may be given without its key.
        swept: the name of a folder starts one job for each picture in the folder.
        written: the file is an output, not an input.
        piped: `-` means standard input, or for an output standard output.
        paired: a command line with the key, and without `experiment`, has experiment=paired.
        words: values with a special meaning, which are never read as paths.
        idle: see `number`.
    """
    marks = {"positional": positional, "swept": swept, "written": written, "piped": piped}
    marks["paired"] = paired
    metadata = {"path": True, "choices": words, "idle": idle, **marks}
    declared: T = field(default=default, metadata=metadata)
    return declared


def each(value: Any) -> list[Any]:
    """Return the value or values of a key as a new list, which is empty for None."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]
