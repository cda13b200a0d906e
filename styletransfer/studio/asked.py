"""From what the page asks for to the settings of a run, as the command line would have them."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omegaconf import OmegaConf

from styletransfer.config import TrainConfig
from styletransfer.settings import compose, settings_of
from styletransfer.settings.command_line import command, override
from styletransfer.settings.schemas import unknown_key
from styletransfer.studio.controls import CHOOSING, CONTROLS, Control
from styletransfer.studio.pictures import Pictures
from styletransfer.studio.refusal import RefusedError

# Of a text, in characters, and of a list, in entries.
LONGEST, MOST = 300, 64


@dataclass(frozen=True)
class Asked:
    """A run that is asked for.

    Attributes:
        settings: as the page sent them.
        overrides: KEY=VALUE in Hydra's grammar.
        config: composed of them.
        record: name -> text of the files that Hydra keeps in a run's .hydra.
    """

    settings: dict[str, Any]
    overrides: list[str]
    config: TrainConfig
    record: dict[str, str]


def command_of(typed: Sequence[str], changes: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return the command line that makes the picture of a run.

    Args:
        typed: KEY=VALUE of its beginning.
        changes: by which it was steered, each with "after" and "set".
    """
    kept = [each for each in typed if each.partition("=")[0] != "changes"]
    plain = [{"after": each["after"], "set": dict(each["set"])} for each in changes]
    return command([*kept, *([override("changes", plain)] if plain else [])])


def ask(settings: Any, pictures: Pictures) -> Asked:
    """Check what the page has sent and compose a run of it.

    Args:
        settings: key -> value, plain; pictures by their ids.
        pictures: that there are.

    Raises:
        RefusedError: an unknown key, or a value of another kind than its control gives.
        UserError: what the command line refuses.
    """
    values = plain_values(settings, pictures)
    overrides = [
        override(CHOOSING.get(key, key), value)
        for key, value in sorted(values.items(), key=lambda item: item[0] not in CHOOSING)
    ]
    composed = compose("train", overrides, with_hydra=True)
    hydra = composed.hydra
    OmegaConf.set_struct(composed, False)
    del composed["hydra"]
    record = {
        "config.yaml": OmegaConf.to_yaml(composed),
        "hydra.yaml": OmegaConf.to_yaml(OmegaConf.create({"hydra": hydra})),
        "overrides.yaml": OmegaConf.to_yaml(OmegaConf.create(overrides)),
    }
    return Asked(dict(settings), overrides, settings_of(composed, "train"), record)


def plain_values(settings: Any, pictures: Pictures) -> dict[str, Any]:
    """Return key -> value as the config has them, file names for ids.

    Raises:
        RefusedError: see `ask`.
    """
    if not isinstance(settings, Mapping):
        raise RefusedError("settings must be a JSON object")
    values = {}
    for key, value in settings.items():
        if key not in CONTROLS:
            raise RefusedError(unknown_key(str(key), CONTROLS, "the page offers none of that name"))
        values[key] = _plain(CONTROLS[key], value, pictures)
    return values


def _plain(control: Control, value: Any, pictures: Pictures) -> Any:
    """Return a value as the config has it.

    Raises:
        RefusedError: it is of another kind than the control gives.
    """
    kind, key = control.kind, control.key
    if kind in ("picture", "regions", "mask"):
        return None if value is None else pictures.find(_text(key, value)).path
    if kind == "pictures":
        ids = value if isinstance(value, list) else [value]
        paths = [pictures.find(_text(key, id)).path for id in _listed(key, ids)]
        return paths[0] if len(paths) == 1 else paths
    if kind in ("number", "integer"):
        return _number(key, value)
    if kind == "numbers":
        if isinstance(value, list):
            return [_number(key, each) for each in _listed(key, value)]
        return _number(key, value)
    if kind == "names":
        names = [name.strip() for name in _text(key, value).split(",")]
        return [name for name in names if name]
    if kind == "mapping":
        return _mapping(key, value)
    if kind == "choice" and value not in control.choices:
        raise RefusedError(
            f"{key}={value!s:.80} must be one of {', '.join(control.choices)}", 400, key
        )
    return _text(key, value)


def _text(key: str, value: Any) -> str:
    if not isinstance(value, str) or len(value) > LONGEST or not value.isprintable():
        raise RefusedError(f"{key} must be a text of at most {LONGEST} characters", 400, key)
    return value


def _number(key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise RefusedError(f"{key} must be a number", 400, key)
    return value


def _listed(key: str, value: list[Any]) -> list[Any]:
    if len(value) > MOST:
        raise RefusedError(f"{key} has {len(value)} values; give at most {MOST}", 400, key)
    return value


def _mapping(key: str, value: Any) -> dict[str, int]:
    """Return a mapping of colours to whole numbers; Hydra knows no #, and 0x says the same."""
    if not isinstance(value, Mapping) or len(value) > MOST:
        raise RefusedError(f"{key} must give each of at most {MOST} colours a number", 400, key)
    for name, number in value.items():
        if not re.fullmatch(r"[a-z]{1,30}|#[0-9a-f]{6}", name):
            raise RefusedError(f"{key}: {name[:80]!r} is no name of a colour", 400, key)
        if isinstance(number, bool) or not isinstance(number, int):
            raise RefusedError(f"{key}.{name} must be a whole number", 400, key)
    return {name.replace("#", "0x"): number for name, number in value.items()}
