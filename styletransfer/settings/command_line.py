"""Settings as the words of a command line."""

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from styletransfer.config import TrainConfig
from styletransfer.settings.paths import quoted
from styletransfer.settings.schemas import mapping_keys, path_keys

# A word that Hydra's grammar takes for itself, but for those that mean something else.
_PLAIN = re.compile(r"[A-Za-z_][\w./:-]*")
_MEANS_SOMETHING = ("null", "true", "false", "yes", "no", "on", "off", "inf", "nan")
# One file name in quotes that it does not need, or several in brackets.
_PLAIN_NAME = r"'(?!\s|null')[^'\"\\\[\]{}$,]+(?<!\s)'"
_PLAIN_NAMES = re.compile(rf"{_PLAIN_NAME}|\[{_PLAIN_NAME}(,{_PLAIN_NAME})*\]")


def override(key: str, value: Any) -> str:
    """Return KEY=VALUE in Hydra's grammar.

    Args:
        key: such as "objective.style_weight".
        value: plain: None, a bool, a number, a text, a list of them, or a mapping of words
            to numbers.
    """
    prefix = "++" if key.partition(".")[0] in mapping_keys(TrainConfig) else ""
    return f"{prefix}{key}={_word(value, names=key in path_keys(TrainConfig))}"


def command(typed: Iterable[str] | None) -> str:
    """Return the command line of a run of `train` for a shell; "" if none was recorded.

    Args:
        typed: KEY=VALUE, as Hydra takes and records them.
    """
    if typed is None:
        return ""
    return shlex.join(["styletransfer", "train", *map(_as_typed, typed)])


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
