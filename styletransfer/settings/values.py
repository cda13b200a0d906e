"""Keys with their values: in Hydra's grammar, as Python has them, and as they change in a run."""

import json
import os
import re
import shlex
from collections.abc import Collection, Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from operator import attrgetter
from typing import Any, TypeVar

from hydra.core.override_parser.types import Quote, QuotedString
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from styletransfer.errors import UserError
from styletransfer.settings import ApplyConfig, ChangeConfig, StyleTransferConfig, TrainConfig
from styletransfer.settings.commands import CONFIGS
from styletransfer.settings.schemas import (
    GROUPS,
    check,
    check_choice,
    flat,
    keys,
    mapping_keys,
    path_keys,
    refusal,
    unknown_key,
)

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
Config = TypeVar("Config", bound=StyleTransferConfig)

# What a run is of, where it began, and where it is made.
FIXED = ("content", "init", "seed", "device", "precision", "output")


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


def command(typed: Iterable[str] | None, name: str = "train") -> str:
    """Return a shell's line for a run of which Hydra has recorded this; "" for None."""
    if typed is None:
        return ""
    return shlex.join(["styletransfer", name, *map(_as_typed, typed)])


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
    if key.lstrip("+") not in (*path_keys(TrainConfig), *path_keys(ApplyConfig)):
        return typed
    if _PLAIN_NAMES.fullmatch(value):
        value = value.replace("'", "")
    return f"{key}{equals}{value}"


def with_values(config: Config, values: Mapping[str, Any]) -> Config:
    """Return settings of which some keys have other values (UserError: no such key, or value).

    The values, Python's own or NumPy's, are by their keys, such as "objective.content_weight", or
    nested; "features", "loss_mode" and "optimizer" may name one of their presets. Texts are taken
    as they are.
    """
    schema = type(config)
    mappings = {key: values[key] for key in mapping_keys(schema) if key in values}
    others = flat({key: value for key, value in values.items() if key not in mappings})
    # A preset comes first, so that keys of its group may differ from it.
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
    except (OmegaConfBaseException, ValueError, TypeError) as error:
        raise refusal(error, "train") from error
    for key in asked:
        owner, _, name = key.rpartition(".")
        setattr(attrgetter(owner)(result) if owner else result, name, attrgetter(key)(parsed))
    check(result)
    return result


def changed(config: Config, values: Mapping[str, Any]) -> Config:
    """Return `with_values` of a run under way (UserError: also a key that cannot change then)."""
    check_can_change(values)
    return with_values(config, values)


def check_can_change(asked: Iterable[str]) -> None:
    """Check that none of some keys is fixed as long as a run lasts (UserError: one is)."""
    of_a_picture = dict(keys(StyleTransferConfig))
    only_once = {key for key, _ in keys(TrainConfig) if key not in of_a_picture}
    for key in asked:
        if key in only_once.union(FIXED):
            raise UserError(f"{key} cannot change during a run; start another one")


def in_turn(config: Config, changes: list[ChangeConfig]) -> list[Config]:
    """Return the settings that each change makes of those before it (UserError: one cannot)."""
    settings, before = [], 0
    for change in changes:
        if change.after < before:
            raise UserError(f"changes: after={change.after} must be {before} or more, in order")
        before = change.after
        config = changed(config, change.set)
        settings.append(config)
    return settings


def with_change(changes: list[ChangeConfig], change: ChangeConfig) -> list[ChangeConfig]:
    """Return changes with one more; two after the same step are one."""
    if changes and changes[-1].after == change.after:
        return [*changes[:-1], replace(changes[-1], set=changes[-1].set | change.set)]
    return [*changes, change]


def plain(key: str, value: Any) -> Any:
    """Return a value as OmegaConf takes it, its texts escaped (UserError: it is to be a file)."""
    if isinstance(value, Mapping):
        return {name: plain(key, one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(key, one) for one in value]
    if isinstance(value, str | os.PathLike):
        return literal(os.fspath(value))
    if value is not None and key in path_keys(StyleTransferConfig):
        raise UserError(f"{key} is a {type(value).__name__}; give a path")
    return value.tolist() if hasattr(value, "tolist") else value
