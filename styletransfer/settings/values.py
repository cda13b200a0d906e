"""Values of settings: quotes for Hydra's grammar, words of a command line, and new values."""

import json
import os
import re
import shlex
from collections.abc import Iterable, Mapping
from copy import deepcopy
from operator import attrgetter
from typing import Any, TypeVar

from hydra.core.override_parser.types import Quote, QuotedString
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from styletransfer.errors import UserError
from styletransfer.settings import StyleTransferConfig, TrainConfig
from styletransfer.settings.commands import CONFIGS
from styletransfer.settings.schemas import (
    GROUPS,
    check,
    check_choice,
    flat,
    keys,
    keys_marked,
    mapping_keys,
    path_keys,
    refusal,
    unknown_key,
)

# Hydra's own keys whose value is a folder. In these values, ${...} is an interpolation.
HYDRA_FOLDERS = ("hydra.run.dir", "hydra.sweep.dir")
# _QUOTED: a value in quotes. _ELEMENT: a value (in quotes, in brackets or plain) and its comma.
_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_ELEMENT = re.compile(rf"\s*((?:{_QUOTED}|\[(?:{_QUOTED}|[^\]])*\])(?=\s*,)|[^,]*?)\s*,", re.S)
# _PLAIN: pattern of a text that needs no quotes in Hydra's grammar. _MEANS_SOMETHING: words that
# need quotes all the same, because Hydra would read a number, a bool or null.
_PLAIN = re.compile(r"(?a)[A-Za-z_/][\w./:-]*")
_MEANS_SOMETHING = ("null", "true", "false", "yes", "no", "on", "off", "inf", "nan")
# Keys that cannot change during a run; nor can those that only TrainConfig has.
FIXED = ("content", "init", "seed", "device", "precision", "output")
Config = TypeVar("Config", bound=StyleTransferConfig)


def quote_names(override: str, schema: type[Any], *, sweep: bool = False) -> str:
    """Return the word KEY=VALUE with quotes where Hydra needs them, if KEY takes file names.

    `null` and names in quotes are not changed. A list in brackets holds several names, if KEY takes
    a list. In a `sweep`, commas separate values, and a name that holds a comma needs quotes.
    """
    key, equals, value = override.partition("=")
    name = key.lstrip("+")
    is_folder = name in HYDRA_FOLDERS and "${" not in value
    if not equals or value == "null" or not (is_folder or name in path_keys(schema)):
        return override
    values = split(value) if sweep and not is_folder else [value]
    is_list = name in keys_marked(schema, "each")
    return f"{key}=" + ",".join(
        _quoted_list(entry) if is_list else _quoted(entry) for entry in values
    )


def split(value: str) -> list[str]:
    """Split a text at its commas, except commas inside quotes or brackets."""
    return _ELEMENT.findall(f"{value},")


def quoted(value: str) -> str:
    """Return a text in quotes if needed, so that Hydra and OmegaConf read the same characters."""
    if _PLAIN.fullmatch(value) and value.lower() not in _MEANS_SOMETHING:
        return value
    return QuotedString(text=literal(value), quote=Quote.single).with_quotes()


def literal(value: str) -> str:
    """Return a text in which every ${ is escaped, so that OmegaConf reads no interpolation."""
    return re.sub(r"(\\*)\$\{", lambda found: found[1] * 2 + "\\${", value)


def override(key: str, value: Any) -> str:
    """Return the word KEY=VALUE in Hydra's grammar.

    The value is None, a bool, a number, a text, a list of these, or a mapping of names to numbers.
    """
    prefix = "++" if key.partition(".")[0] in mapping_keys(TrainConfig) else ""
    return f"{prefix}{key}={_word(value)}"


def command(typed: Iterable[str] | None, name: str = "train") -> str:
    """Return `styletransfer NAME WORDS...` for a shell; `typed` are the words; "" for None."""
    return "" if typed is None else shlex.join(["styletransfer", name, *typed])


def _quoted(value: str) -> str:
    return value if re.fullmatch(_QUOTED, value, re.S) else quoted(value)


def _quoted_list(value: str) -> str:
    """Return a list in brackets with each of its names in quotes, or one name."""
    if not (value.startswith("[") and value.endswith("]")):
        return _quoted(value)
    names = split(value[1:-1]) if value[1:-1].strip() else []
    return f"[{','.join(map(_quoted, names))}]"


def _word(value: Any) -> str:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list):
        return f"[{','.join(map(_word, value))}]"
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{_word(entry)}" for key, entry in value.items()) + "}"
    return json.dumps(value)


def with_values(config: Config, values: Mapping[str, Any]) -> Config:
    """Return a copy of `config` with new values (UserError: an unknown key or a wrong value).

    `values` maps keys such as "objective.content_weight" to values of Python or NumPy, and may be
    nested. For "features", "loss_mode" and "optimizer", the value may be the name of a preset.
    Texts are used literally, without interpolation.
    """
    schema = type(config)
    mappings = {key: values[key] for key in mapping_keys(schema) if key in values}
    others = flat({key: value for key, value in values.items() if key not in mappings})
    # Presets are applied first, so that keys of the same group can override a preset.
    asked = dict(sorted(others, key=lambda pair: pair[0] not in GROUPS)) | mappings
    known = [key for key, _ in keys(schema)]
    node, result = OmegaConf.structured(schema), deepcopy(config)
    try:
        for key, value in asked.items():
            if key not in known:
                raise UserError(unknown_key(key, known))
            if key in GROUPS:
                check_choice(key, value)
                value = OmegaConf.load(CONFIGS / key / f"{value}.yaml")
            else:
                value = plain(key, value)
            OmegaConf.update(node, key, value, merge=key not in mappings)
        parsed = OmegaConf.to_object(node)
    except (OmegaConfBaseException, ArithmeticError, ValueError, TypeError) as error:
        raise refusal(error, "train") from error
    for key in asked:
        owner, _, name = key.rpartition(".")
        setattr(attrgetter(owner)(result) if owner else result, name, attrgetter(key)(parsed))
    check(result)
    return result


def plain(key: str, value: Any) -> Any:
    """Return a value of Python or NumPy as OmegaConf takes it (UserError: `key` needs a path)."""
    if isinstance(value, Mapping):
        return {name: plain(key, entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(key, entry) for entry in value]
    if isinstance(value, str | os.PathLike):
        return literal(os.fspath(value))
    if value is not None and key in path_keys(StyleTransferConfig):
        raise UserError(f"{key} is a {type(value).__name__}; give a path")
    return value.tolist() if hasattr(value, "tolist") else value


def changed(config: Config, values: Mapping[str, Any]) -> Config:
    """Return `config` with new values (UserError: a bad value, or a key that cannot change)."""
    check_can_change(values)
    return with_values(config, values)


def check_can_change(asked: Iterable[str]) -> None:
    """Check that all `asked` keys may change during a run (UserError: one may not)."""
    of_a_picture = dict(keys(StyleTransferConfig))
    only_once = {key for key, _ in keys(TrainConfig) if key not in of_a_picture}
    for key in asked:
        if key in only_once.union(FIXED):
            raise UserError(f"{key} cannot change during a run; start another one")
