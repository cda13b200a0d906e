"""How keys are declared whose values are more than their types say."""

from dataclasses import field
from typing import Any, TypeVar

from styletransfer.resources import resource

T = TypeVar("T")

ASSETS = resource("assets")


def choice(*words: str) -> str:
    """Say that a key takes one of these words, of which the first is its default."""
    declared: str = field(default=words[0], metadata={"choices": words})
    return declared


def path(default: T, *words: str, positional: bool = False, swept: bool = False) -> T:
    """Say that a key's value is a file name: the command line takes any, as it is typed.

    It may be one of some `words` as well. A positional one may be given without its key. Where one
    is `swept`, a folder or a pattern stands for one job for each of its pictures.
    """
    metadata = {"path": True, "choices": words, "positional": positional, "swept": swept}
    declared: T = field(default=default, metadata=metadata)
    return declared


# Of keys that hold one value or a list of them; see `each`.
NUMBERS = {"each": float}
PATHS = {"each": str, "path": True}


def each(value: Any) -> list[Any]:
    """Return the values of a key that holds one or more: a list, empty for None."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]
