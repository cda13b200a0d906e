"""Converts words KEY=VALUE from the form that a person types to Hydra's grammar, and back."""

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from hydra.core.override_parser.types import Quote, QuotedString

from styletransfer.settings import TrainConfig
from styletransfer.settings.schemas import keys_marked, mapping_keys

# Hydra's own keys whose value is a folder. In these values, ${...} is an interpolation.
HYDRA_FOLDERS = ("hydra.run.dir", "hydra.sweep.dir")
# Patterns. _QUOTED: a value in quotes. _ELEMENT: a value (in quotes, in brackets, or plain) and the
# comma after it.
_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_ELEMENT = re.compile(rf"\s*((?:{_QUOTED}|\[(?:{_QUOTED}|[^\]])*\])(?=\s*,)|[^,]*?)\s*,", re.S)
# _RAW: pattern of a file name that needs no quotes on the command line, even in a list or a sweep.
_RAW = re.compile(r"(?!\s)[^'\"\[\],]+(?<!\s)")
# _PLAIN: pattern of a text that needs no quotes: Hydra does not read it as a number, bool or null.
_PLAIN = re.compile(r"(?ai)(?!(null|true|false|yes|no|on|off|inf|nan)\Z)[a-z_/][\w./:-]*")


def for_hydra(word: str, schema: type[Any], *, sweep: bool = False) -> str:
    """Return a word KEY=VALUE, as a user types it, in Hydra's grammar.

    If KEY takes a file name, all characters after the first = are the name, and it gets quotes if
    Hydra needs them. `null` and a name in quotes are not changed. If KEY takes a list, each name of
    a list in brackets is quoted. In a `sweep`, commas separate values, and the user must quote a
    name with a comma.
    """
    key, equals, value = word.partition("=")
    name = key.lstrip("+")
    if key.partition(".")[0] in mapping_keys(schema):
        return f"++{word}"  # without ++ Hydra refuses new keys of a mapping: region_styles.red=1
    is_folder = name in HYDRA_FOLDERS and "${" not in value
    if not equals or value == "null" or not (is_folder or name in keys_marked(schema, "path")):
        return word
    values = split(value) if sweep and not is_folder else [value]
    is_list = name in keys_marked(schema, "each")
    return f"{key}={','.join(_quoted(entry, is_list) for entry in values)}"


def split(value: str) -> list[str]:
    """Split a text at its commas, except commas inside quotes or brackets."""
    return _ELEMENT.findall(f"{value},")


def quoted(value: str) -> str:
    """Return a text in quotes if needed, so that Hydra and OmegaConf read the same characters."""
    if _PLAIN.fullmatch(value):
        return value
    return QuotedString(text=literal(value), quote=Quote.single).with_quotes()


def literal(value: str) -> str:
    """Return a text in which every ${ is escaped, so that OmegaConf reads no interpolation."""
    return re.sub(r"(\\*)\$\{", lambda found: found[1] * 2 + "\\${", value)


def override(key: str, value: Any, schema: type[Any] = TrainConfig) -> str:
    """Return the word KEY=VALUE, as a person types it, for a command with the settings `schema`."""
    return f"{key}={_word(value, is_name=key in keys_marked(schema, 'path'))}"


def command_line(typed: Iterable[str], name: str = "train") -> str:
    """Return the command `styletransfer NAME WORDS...`, quoted for a shell."""
    return shlex.join(["styletransfer", name, *typed])


def _quoted(value: str, is_list: bool = False) -> str:
    """Return a name in quotes if needed; with `is_list`, quote each name of a list in brackets."""
    if is_list and value.startswith("[") and value.endswith("]"):
        names = split(value[1:-1]) if value[1:-1].strip() else []
        return f"[{','.join(map(_quoted, names))}]"
    return value if re.fullmatch(_QUOTED, value, re.S) else quoted(value)


def _word(value: Any, *, is_name: bool = False) -> str:
    if isinstance(value, str):
        is_raw = is_name and value not in ("null", "-") and _RAW.fullmatch(value)
        return value if is_raw else quoted(value)
    if isinstance(value, list):
        return f"[{','.join(_word(entry, is_name=is_name) for entry in value)}]"
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{_word(entry)}" for key, entry in value.items()) + "}"
    return json.dumps(value)
