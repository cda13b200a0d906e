"""File names on the command line: any that a person types, though Hydra's grammar knows few."""

import os
import re
from collections.abc import Collection

from hydra.core.override_parser.types import Quote, QuotedString

from styletransfer.errors import UserError

# Hydra's own keys that name a folder; there ${...} keeps its meaning.
HYDRA_FOLDERS = ("hydra.run.dir", "hydra.sweep.dir")
# choice(a,b), range(1,3) and the like, which Hydra knows in sweeps.
SWEEP_FUNCTION = re.compile(r"(choice|range|interval|glob|shuffle|sort|tag)\(.*\)")
# Names that all stand in single quotes, as `quoted` leaves them; commas may be among their letters.
QUOTED_LIST = re.compile(r"\[(?:'(?:[^'\\]|\\.)*'(?:,|(?=\])))+\]")


def quote_path(
    override: str, keys: Collection[str], lists: Collection[str] = (), *, sweep: bool = False
) -> str:
    """Return KEY=VALUE so that Hydra takes VALUE as it is, if KEY is one of `keys`.

    Left to Hydra are `null` and a value that stands in quotes. In brackets stand several names,
    with commas between them, where KEY is one of `lists`. In a sweep commas separate values, and a
    name that holds one needs quotes.

    Args:
        override: an argument, such as content=a (1).jpg.
        keys: those whose values are file names.
        lists: those of them that take several.
        sweep: whether the command line asks for one job per value.
    """
    key, equals, value = override.partition("=")
    name = key.lstrip("+")
    folder = name in HYDRA_FOLDERS and "${" not in value
    if not equals or not (folder or name in keys) or value == "null" or _in_quotes(value):
        return override
    if sweep and (value[:1] in ("'", '"') or SWEEP_FUNCTION.fullmatch(value)):
        return override
    values = re.split(r",(?![^\[]*\])", value) if sweep and not folder else [value]
    return f"{key}=" + ",".join(_listed(each) if name in lists else quoted(each) for each in values)


def _listed(value: str) -> str:
    """Return a list in brackets with each of its names in quotes, or one name."""
    if not (value.startswith("[") and value.endswith("]")):
        return quoted(value)
    if QUOTED_LIST.fullmatch(value):
        return value
    names = [name.strip() for name in value[1:-1].split(",")] if value[1:-1].strip() else []
    return "[" + ",".join(name if _in_quotes(name) else quoted(name) for name in names) + "]"


def quoted(value: str) -> str:
    """Return a value in quotes that Hydra and OmegaConf read as the very same characters."""
    return QuotedString(text=literal(value), quote=Quote.single).with_quotes()


def literal(value: str) -> str:
    """Escape what OmegaConf would take for an interpolation."""
    return re.sub(r"(\\*)\$\{", lambda found: found[1] * 2 + "\\${", value)


def expanded(path: str | os.PathLike[str]) -> str:
    """Return a file name with `~` expanded.

    Raises:
        UserError: no file can have that name, as it holds a NUL character or half a character.
    """
    name = os.fspath(path)
    try:
        possible = b"\0" not in os.fsencode(name)
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise UserError(f"{name!r} holds a character that no file name can; choose another")
    return os.path.expanduser(name)


def _in_quotes(value: str) -> bool:
    return len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
