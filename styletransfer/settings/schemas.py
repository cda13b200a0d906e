"""Reads the keys of settings dataclasses (schemas); checks values; explains errors in one line."""

import difflib
import math
import os
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import Field, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_origin

from styletransfer.errors import UserError
from styletransfer.settings import ASSETS, each
from styletransfer.settings.registry import CONFIGS

# Groups of presets: the word GROUP=NAME chooses the settings in configs/GROUP/NAME.yaml.
GROUPS = ("experiment", "features", "loss_mode", "optimizer")
LARGEST = 2**63 - 1  # largest integer that fits into a tensor
# Type of a key that holds a list -> its name in error messages.
LISTS: dict[Any, str] = {
    list[str]: "a list of names",
    list[float]: "a list of numbers",
    list[int]: "a list of whole numbers",
}


def keys(schema: type[Any], prefix: str = "") -> Iterator[tuple[str, Field[Any]]]:
    """Yield (key, field) of a dataclass and its inner dataclasses; "a.b" is field b of field a."""
    for field in fields(schema):
        yield prefix + field.name, field
        if isinstance(field.type, type) and is_dataclass(field.type):
            yield from keys(field.type, f"{prefix}{field.name}.")


def keys_marked(schema: type[Any], mark: str) -> tuple[str, ...]:
    """Return the keys whose declaration has `mark`, such as "path", "swept" or "positional"."""
    return tuple(key for key, field in keys(schema) if field.metadata.get(mark))


def named_files(schema: type[Any], key: str, value: Any) -> list[str]:
    """Return the files and folders in a key's value, without special words such as "auto"."""
    words = dict(keys(schema))[key].metadata.get("choices", ())
    return [name for name in each(value) if isinstance(name, str) and name not in words]


def mapping_keys(schema: type[Any]) -> tuple[str, ...]:
    """Return the keys whose value is a dict with the user's own keys, such as `region_styles`."""
    return tuple(key for key, field in keys(schema) if get_origin(field.type) is dict)


def flat(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (key, value) of nested mappings, with keys such as "objective.style_weight"."""
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def choices(group: str, *folders: str | Path) -> list[str]:
    """Return the names of the presets in a group: its files under configs/ and `folders`."""
    files = (file for folder in (CONFIGS, *folders) for file in Path(folder, group).glob("*.yaml"))
    return sorted({file.stem for file in files if not file.name.startswith(".")})


def check_choice(group: str, name: Any) -> None:
    """Raise UserError, with the names of all presets in the group, if it has no preset `name`."""
    if name not in choices(group):
        raise UserError(f"unknown {group} {name!r}; there are {', '.join(choices(group))}")


def unknown_key(key: str, known: Iterable[str], advice: str = "see --help") -> str:
    """Return one line about an unknown key, with the most similar known key, or else `advice`."""
    known = list(known)
    inner = [name for name in known if name.endswith(f".{key}")]  # tv_weight, without its group
    near = inner or difflib.get_close_matches(key, known, n=1)
    return f"unknown key {key}; " + (f"did you mean {near[0]}?" if near else advice)


def check_values(settings: Any, prefix: str = "") -> None:
    """Expand file names in `settings`, and check all values (UserError if one is not allowed)."""
    for field in fields(settings):
        value, key = getattr(settings, field.name), prefix + field.name
        words, interval = field.metadata.get("choices"), field.metadata.get("interval", "")
        if words and "path" not in field.metadata and value not in words:
            raise UserError(f"unknown {key} {value!r}; choose {', '.join(words)}", key)
        if is_dataclass(value):
            check_values(value, f"{key}.")
        elif "each" in field.metadata and value is not None:
            setattr(settings, field.name, _one_or_more(key, value, field.metadata["each"]))
        elif get_args(field.type)[1:] == (int,):
            for name, number in value.items():
                if not _fits(number, int):  # OmegaConf wrongly accepts lists here
                    raise UserError(f"{key}.{name}={number} must be a whole number")
                _check_interval(f"{key}.{name}", number, "(-inf, inf)")
            # Hydra turns a name such as 1 into a number; here it becomes a text again.
            setattr(settings, field.name, {str(name): value[name] for name in value})
        elif get_origin(field.type) is list:
            if not _fits(value, field.type):  # OmegaConf wrongly accepts lists of lists here
                raise UserError(f"{key}={value} must be {LISTS.get(field.type, 'a list')}", key)
            for entry in filter(is_dataclass, value):
                check_values(entry, f"{key}.")
        elif isinstance(value, str) and "path" in field.metadata:
            setattr(settings, field.name, expanded(value, written=field.metadata["written"]))
        for entry in each(value) if interval else ():
            _check_interval(key, entry, interval)


def _check_interval(key: str, number: float, interval: str) -> None:
    """Check that a number lies in an interval such as "[0, 1)" (UserError if it does not)."""
    if isinstance(number, int) and number > LARGEST:
        raise UserError(f"{key}={number} is too large; it must be below 2^63", key)
    low, high = interval[1:-1].split(", ")
    is_above = number > float(low) or (interval[0] == "[" and number == float(low))
    is_below = number < float(high) or (interval[-1] == "]" and number == float(high))
    if not (is_above and is_below):  # NaN is refused: both are False for it
        limits = [f"{low} or more" if interval[0] == "[" else f"above {low}"]
        limits += [f"at most {high}" if interval[-1] == "]" else f"below {high}"]
        allowed = " and ".join(limit for limit in limits if "inf" not in limit)
        raise UserError(
            f"{key}={number} must be {allowed if math.isfinite(number) else 'finite'}", key
        )


def _one_or_more(key: str, value: Any, kind: type) -> Any:
    entries = value if isinstance(value, list) else [value]
    if not all(_fits(entry, kind) for entry in entries):
        known = "a number" if kind is float else "a file name"
        raise UserError(f"{key}={value} must be {known}, or a list of them in brackets")
    entries = [expanded(entry) if isinstance(entry, str) else entry for entry in entries]
    return entries if isinstance(value, list) else entries[0]


def _fits(value: Any, kind: Any) -> bool:
    """Return whether a value has the type `kind` of a key, such as float or list[list[int]]."""
    if get_origin(kind) is list:
        (inner,) = get_args(kind)
        return isinstance(value, list) and all(_fits(entry, inner) for entry in value)
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, (int, float) if kind is float else kind)


def expanded(path: str | os.PathLike[str], *, written: bool = False) -> str:
    """Return a file name with `~` expanded, or the path of the bundled picture that it names.

    The names content/coffee.jpg and assets/content/coffee.jpg mean the bundled picture if no such
    file exists. A name without a folder, and an output (`written`), never mean a bundled picture.
    (UserError if `path` is no text, empty or a URL, or if no file can have this name.)
    """
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else path
    if not isinstance(name, str):
        raise UserError(f"{path!r} is no file name; give a str or a pathlib.Path")
    if not name:
        raise UserError("a file name is empty; write KEY=FILE, or leave the key out")
    try:
        possible = b"\0" not in os.fsencode(name)
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise UserError(f"{name!r} holds a character that no file name can; choose another")
    name = on_disk(os.path.expanduser(name))
    if "://" in name and not os.path.lexists(name):
        advice = (
            "name a file on this computer" if written else "download it first, and name the file"
        )
        raise UserError(f"{name} is an address, not a file; {advice}")
    folder, _, rest = os.path.normpath(name).replace(os.sep, "/").partition("/")
    if written or not rest or folder in ("", "..") or os.path.lexists(name):
        return name
    packaged = ASSETS / (rest if folder == "assets" else f"{folder}/{rest}")
    try:
        return str(packaged) if packaged.exists() else name
    except OSError:  # the name is too long for the file system
        return name


def on_disk(name: str) -> str:
    """Return a path with its accents in the Unicode form (NFC or NFD) of the file on the disk.

    A keyboard types one form, and some programs write the other. A path that exists as typed, or
    in neither form, is not changed.
    """
    if name.isascii() or os.path.lexists(name):
        return name
    folder, last = os.path.split(name)
    folder = on_disk(folder) if folder != name else folder
    forms = (last, *(unicodedata.normalize(form, last) for form in ("NFC", "NFD")))
    paths = [os.path.join(folder, form) for form in forms]
    return next(filter(os.path.lexists, paths), paths[0])


def refusal(error: Exception) -> UserError:
    """Return an error of Hydra or OmegaConf as a UserError with one line, and its key if known."""
    from styletransfer.settings.refusals import explain

    key = getattr(error.__cause__ or error, "full_key", None)
    return UserError(explain(error), key)
