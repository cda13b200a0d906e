"""The schema of each config file, what Hydra has to know of it, and the keys it holds."""

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import Field, fields, is_dataclass
from pathlib import Path
from typing import Any, get_origin

from hydra.core.config_store import ConfigStore

from styletransfer.config import (
    ApplyConfig,
    CompareConfig,
    ExportConfig,
    FilmConfig,
    GalleryConfig,
    MixConfig,
    StudioConfig,
    TrainConfig,
    TrainNetworkConfig,
    each,
)
from styletransfer.errors import UserError
from styletransfer.resources import resource
from styletransfer.settings.paths import quoted

CONFIGS = resource("configs")
# Of which one file each is chosen, by its name.
GROUPS = ("experiment", "features", "loss_mode", "optimizer")

# Name of a file under configs/ -> its schema.
SCHEMAS: dict[str, type[Any]] = {
    "train": TrainConfig,
    "compare": CompareConfig,
    "mix": MixConfig,
    "explain": TrainConfig,
    "train_network": TrainNetworkConfig,
    "apply": ApplyConfig,
    "export": ExportConfig,
    "film": FilmConfig,
    "gallery": GalleryConfig,
    "studio": StudioConfig,
}
# Commands whose work several processes of torchrun's can share.
SHARED = ("train", "train_network")
# What a command takes, so that the words of a run can be given to it, and does not use.
UNUSED: dict[str, tuple[str, ...]] = {
    "explain": (
        *("output", "steps", "scales", "tile", "optimizer"),
        *("changes", "snapshot_every", "checkpoint_every", "resume", "dry_run"),
    )
}
# Commands that the package does not have -> schema, and the folder of their file.
_OUTSIDE: dict[str, tuple[type[Any], Path]] = {}


def add_command(name: str, schema: type[Any], folder: Path) -> None:
    """Make a command from outside the package known, whose file is `folder`/<name>.yaml.

    Beside what is in its folder the file may build on the package's groups.
    """
    _OUTSIDE[name] = schema, folder


def schema_of(name: str) -> type[Any]:
    """Return the schema of a command."""
    return _OUTSIDE[name][0] if name in _OUTSIDE else SCHEMAS[name]


def folder_of(name: str) -> Path:
    """Return the folder of a command's file."""
    return _OUTSIDE[name][1] if name in _OUTSIDE else CONFIGS


def search_path(name: str, config_dir: str | None = None) -> list[str]:
    """Return the override, if one is needed, that says where else a command's files are.

    Args:
        name: of the command.
        config_dir: a folder with a person's own files, or None.
    """
    folders = [config_dir] if config_dir else []
    if name in _OUTSIDE:
        folders.append(str(CONFIGS))
    searched = ",".join(quoted(f"file://{os.path.abspath(folder)}") for folder in folders)
    return [f"hydra.searchpath=[{searched}]"] if folders else []


def register_schema(name: str) -> None:
    """Make the schema of a command's file known to Hydra."""
    store = ConfigStore.instance()
    for other, schema in ({**SCHEMAS, name: schema_of(name)}).items():
        # A file may build on another of its schema. Hydra takes a moment to convert each one.
        if schema is schema_of(name):
            store.store(name=f"{other}_schema", node=schema)


def keys(schema: type[Any], prefix: str = "") -> Iterator[tuple[str, Field[Any]]]:
    """Yield every key of a dataclass of dataclasses, such as objective.style_weight."""
    for field in fields(schema):
        yield prefix + field.name, field
        if isinstance(field.type, type) and is_dataclass(field.type):
            yield from keys(field.type, f"{prefix}{field.name}.")


def flat(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the keys and values of nested mappings, the keys as in objective.style_weight."""
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def path_keys(schema: type[Any]) -> list[str]:
    """Return the keys whose values are file names."""
    return [key for key, field in keys(schema) if "path" in field.metadata]


def named_files(schema: type[Any], key: str, value: Any) -> list[str]:
    """Return the files and folders that a value of a key names, without the key's own words."""
    words = dict(keys(schema))[key].metadata.get("words", ())
    return [name for name in each(value) if isinstance(name, str) and name not in words]


def list_keys(schema: type[Any]) -> list[str]:
    """Return the keys that take one value or a list of them."""
    return [key for key, field in keys(schema) if "each" in field.metadata]


def swept_keys(schema: type[Any]) -> list[str]:
    """Return the keys to which a folder or a pattern gives one job for each of its pictures."""
    return [key for key, field in keys(schema) if field.metadata.get("swept")]


def positional_key(schema: type[Any]) -> str | None:
    """Return the key whose value may be given without it, if there is one."""
    return next((key for key, field in keys(schema) if field.metadata.get("positional")), None)


def mapping_keys(schema: type[Any]) -> list[str]:
    """Return the keys that take a mapping whose own keys are up to the person."""
    return [key for key, field in keys(schema) if get_origin(field.type) is dict]


def choices(group: str, *more: str | Path | None) -> list[str]:
    """Return the names that a group offers: its files under configs/, and in more folders."""
    folders = [CONFIGS / group, *(Path(folder) / group for folder in more if folder)]
    return sorted({file.stem for folder in folders for file in folder.glob("*.yaml")})


def check_choice(group: str, name: Any) -> None:
    """Check that a group offers a name.

    Raises:
        UserError: it does not; the message lists those that it offers.
    """
    if name not in choices(group):
        raise UserError(f"unknown {group} {name!r}; there are {', '.join(choices(group))}")


def unknown_key(key: str, known: Iterable[str], advice: str = "see --help") -> str:
    """Say in one line that there is no such key, and which is the nearest."""
    near = difflib.get_close_matches(key, list(known), n=1)
    return f"unknown key {key}; " + (f"did you mean {near[0]}?" if near else advice)
