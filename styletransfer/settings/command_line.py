"""KEY=VALUE in Hydra's grammar: from what a person types, and from settings to type again."""

import json
import re
import shlex
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from hydra.core.override_parser.types import Quote, QuotedString

from styletransfer.config import TrainConfig
from styletransfer.settings.schemas import mapping_keys, path_keys

# Hydra's own keys that name a folder; there ${...} keeps its meaning.
HYDRA_FOLDERS = ("hydra.run.dir", "hydra.sweep.dir")
# choice(a,b), range(1,3) and the like, which Hydra knows in sweeps.
SWEEP_FUNCTION = re.compile(r"(choice|range|interval|glob|shuffle|sort|tag)\(.*\)")
# A value in quotes, in which commas are letters; or a list of them, or of bare ones, in brackets.
_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_ELEMENT = re.compile(rf"\s*((?:{_QUOTED}|\[(?:{_QUOTED}|[^\]])*\])(?=\s*,)|[^,]*?)\s*,", re.S)
# A word that Hydra's grammar takes for itself, but for those that mean something else.
_PLAIN = re.compile(r"[A-Za-z_][\w./:-]*")
_MEANS_SOMETHING = ("null", "true", "false", "yes", "no", "on", "off", "inf", "nan")
# One file name in quotes that it does not need, or several in brackets.
_PLAIN_NAME = r"'(?!\s|null')[^'\"\\\[\]{}$,]+(?<!\s)'"
_PLAIN_NAMES = re.compile(rf"{_PLAIN_NAME}|\[{_PLAIN_NAME}(,{_PLAIN_NAME})*\]")


def quote_path(
    override: str, keys: Collection[str], lists: Collection[str] = (), *, sweep: bool = False
) -> str:
    """Return KEY=VALUE so that Hydra takes VALUE as it is, if KEY is one of `keys`.

    Those are the keys of file names. Left to Hydra are `null` and names in quotes. In brackets
    stand several names, with commas between them, where KEY is one of `lists`; in a `sweep` commas
    separate values. There a name that holds one needs quotes.
    """
    key, equals, value = override.partition("=")
    name = key.lstrip("+")
    folder = name in HYDRA_FOLDERS and "${" not in value
    if not equals or not (folder or name in keys) or value == "null":
        return override
    if sweep and SWEEP_FUNCTION.fullmatch(value):
        return override
    values = split(value) if sweep and not folder else [value]
    return f"{key}=" + ",".join(_listed(one) if name in lists else _named(one) for one in values)


def split(value: str) -> list[str]:
    """Return what stands between the commas that neither quotes nor brackets hold."""
    return _ELEMENT.findall(f"{value},")


def quoted(value: str) -> str:
    """Return a value in quotes that Hydra and OmegaConf read as the very same characters."""
    return QuotedString(text=literal(value), quote=Quote.single).with_quotes()


def literal(value: str) -> str:
    """Escape what OmegaConf would take for an interpolation."""
    return re.sub(r"(\\*)\$\{", lambda found: found[1] * 2 + "\\${", value)


def override(key: str, value: Any) -> str:
    """Return KEY=VALUE in Hydra's grammar.

    The value is plain: None, a bool, a number, a text, a list of them, or a mapping of words to
    numbers.
    """
    prefix = "++" if key.partition(".")[0] in mapping_keys(TrainConfig) else ""
    return f"{prefix}{key}={_word(value, names=key in path_keys(TrainConfig))}"


def command(typed: Iterable[str] | None) -> str:
    """Return a shell's line for a run of `train` of which Hydra has recorded this; "" for None."""
    if typed is None:
        return ""
    return shlex.join(["styletransfer", "train", *map(_as_typed, typed)])


def _named(value: str) -> str:
    return value if re.fullmatch(_QUOTED, value, re.S) else quoted(value)


def _listed(value: str) -> str:
    """Return a list in brackets with each of its names in quotes, or one name."""
    if not (value.startswith("[") and value.endswith("]")):
        return _named(value)
    names = split(value[1:-1]) if value[1:-1].strip() else []
    return f"[{','.join(map(_named, names))}]"


def _word(value: Any, *, names: bool = False) -> str:
    """Return a value in Hydra's grammar; file names in quotes, as a list of them needs it."""
    if isinstance(value, str):
        plain = _PLAIN.fullmatch(value) and value.lower() not in _MEANS_SOMETHING
        return value if plain and not names else quoted(value)
    if isinstance(value, list):
        return f"[{','.join(_word(one, names=names) for one in value)}]"
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{_word(one)}" for key, one in value.items()) + "}"
    return json.dumps(value)


def _as_typed(typed: str) -> str:
    """Take off the quotes that our own command line puts around plain file names."""
    key, equals, value = typed.partition("=")
    if key.lstrip("+") not in path_keys(TrainConfig):
        return typed
    if _PLAIN_NAMES.fullmatch(value):
        value = value.replace("'", "")
    return f"{key}{equals}{value}"
