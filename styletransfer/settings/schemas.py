"""The keys that a schema holds, and what is said of them."""

import ast
import difflib
import inspect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import Field, fields, is_dataclass
from pathlib import Path
from typing import Any, get_origin

from styletransfer.config import each
from styletransfer.config.commands import CONFIGS
from styletransfer.errors import UserError

# Of which one file each is chosen, by its name.
GROUPS = ("experiment", "features", "loss_mode", "optimizer")


def keys(schema: type[Any], prefix: str = "") -> Iterator[tuple[str, Field[Any]]]:
    """Yield every key of a dataclass of dataclasses, such as objective.style_weight."""
    for field in fields(schema):
        yield prefix + field.name, field
        if isinstance(field.type, type) and is_dataclass(field.type):
            yield from keys(field.type, f"{prefix}{field.name}.")


def keys_marked(schema: type[Any], mark: str) -> tuple[str, ...]:
    """Return the keys that the schema declares so: "path", "each", "swept" or "positional"."""
    return tuple(key for key, field in keys(schema) if field.metadata.get(mark))


def path_keys(schema: type[Any]) -> tuple[str, ...]:
    """Return the keys whose values are file names."""
    return keys_marked(schema, "path")


def named_files(schema: type[Any], key: str, value: Any) -> list[str]:
    """Return the files and folders that a value of a key names, without the key's own words."""
    words = dict(keys(schema))[key].metadata.get("choices", ())
    return [name for name in each(value) if isinstance(name, str) and name not in words]


def mapping_keys(schema: type[Any]) -> tuple[str, ...]:
    """Return the keys that take a mapping whose own keys are up to the person."""
    return tuple(key for key, field in keys(schema) if get_origin(field.type) is dict)


def flat(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the keys and values of nested mappings, the keys as in objective.style_weight."""
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def choices(group: str, *folders: str | Path) -> list[str]:
    """Return the names that a group offers: its files under configs/, and in more such folders."""
    files = (file for folder in (CONFIGS, *folders) for file in Path(folder, group).glob("*.yaml"))
    return sorted({file.stem for file in files})


def check_choice(group: str, name: Any) -> None:
    """Check that a group offers a name (UserError: it does not; these are what it offers)."""
    if name not in choices(group):
        raise UserError(f"unknown {group} {name!r}; there are {', '.join(choices(group))}")


def unknown_key(key: str, known: Iterable[str], advice: str = "see --help") -> str:
    """Say in one line that there is no such key, and which is the nearest."""
    near = difflib.get_close_matches(key, list(known), n=1)
    return f"unknown key {key}; " + (f"did you mean {near[0]}?" if near else advice)


def meanings(schema: type[Any]) -> dict[str, str]:
    """Return key -> the text under it in a dataclass and its bases, on one line."""
    texts: dict[str, str] = {}
    for base in reversed(schema.__mro__[:-1]):
        (cls,) = ast.parse(inspect.getsource(base)).body
        assert isinstance(cls, ast.ClassDef)
        for key, text in zip(cls.body, cls.body[1:], strict=False):
            match key, text:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(said))),
                ):
                    texts[name] = " ".join(said.split())
    return texts
