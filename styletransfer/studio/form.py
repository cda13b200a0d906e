"""The form of the page: every control with its default, its help, and the presets of many."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache
from operator import attrgetter
from typing import Any

from styletransfer.config import TrainConfig, each
from styletransfer.config.commands import CONFIGS
from styletransfer.settings import compose, settings_of
from styletransfer.settings.changes import FIXED
from styletransfer.settings.schemas import choices, keys
from styletransfer.studio.controls import CHOOSING, CONTROLS, GROUPS, Control, helps
from styletransfer.studio.pictures import Pictures


def form(pictures: Pictures) -> dict[str, Any]:
    """Return what the page is made of, as plain values."""
    shown = shown_settings(defaults(), pictures)
    return {
        "groups": [
            {
                "name": name,
                "title": title,
                "controls": [_control(control, shown[control.key]) for control in group],
            }
            for name, (title, group) in GROUPS.items()
        ],
        "experiments": experiments(),
    }


def _control(control: Control, default: Any) -> dict[str, Any]:
    return {
        "key": control.key,
        "label": control.label,
        "kind": "text" if control.kind == "names" else control.kind,
        "default": default,
        "help": helps()[control.key],
        "choices": list(control.choices) or None,
        "min": control.low,
        "max": control.high,
        "step": control.step,
        "log": control.log,
        "steerable": control.key not in FIXED,
    }


def shown_changes(changes: Sequence[Mapping[str, Any]], pictures: Pictures) -> list[dict[str, Any]]:
    """Return the changes of a run as the page has them, pictures by their ids."""
    return [
        {
            "after": change["after"],
            "set": {
                key: _shown(CONTROLS[key], value, pictures) if key in CONTROLS else value
                for key, value in change["set"].items()
            },
        }
        for change in changes
    ]


def shown_settings(values: Mapping[str, Any], pictures: Pictures) -> dict[str, Any]:
    """Return every key of the page with its value as the page has it, pictures by their ids.

    Those of files that are not among the pictures are None.

    Args:
        values: key -> value, as a run records its settings.
        pictures: that there are.
    """
    return {key: _shown(control, values[key], pictures) for key, control in CONTROLS.items()}


def changed_settings(values: Mapping[str, Any], pictures: Pictures) -> dict[str, Any]:
    """Return those keys that differ from what the page has by default, as the page sends them.

    Raises:
        KeyError: the values are of another version.
    """
    chosen = tuple(f"{group}={values[key]}" for key, group in CHOOSING.items())
    first, plain = defaults(), defaults(chosen)
    differing = {
        key
        for key in CONTROLS
        if values[key] != plain[key] or (key in CHOOSING and values[key] != first[key])
    }
    shown = shown_settings(values, pictures)
    return {key: shown[key] for key in CONTROLS if key in differing}


@cache
def defaults(overrides: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return key -> value of a run of which nothing else is asked."""
    config = settings_of(compose("train", overrides), "train")
    return {key: attrgetter(key)(config) for key in CONTROLS}


@cache
def experiments() -> list[dict[str, Any]]:
    """Return the presets that set nothing but keys of the page."""
    found = []
    default = TrainConfig()
    for name in choices("experiment"):
        config = settings_of(compose("train", [f"experiment={name}"]), "train")
        differing = {
            key: attrgetter(key)(config)
            for key, field in keys(TrainConfig)
            if not is_dataclass(field.type) and attrgetter(key)(config) != attrgetter(key)(default)
        }
        if differing.keys() <= CONTROLS.keys():
            values = {key: _plain(CONTROLS[key], value) for key, value in differing.items()}
            found.append({"name": name, "help": _heading(name), "values": values})
    return found


def _heading(name: str) -> str:
    """Return the line that opens the file of a preset."""
    lines = (CONFIGS / "experiment" / f"{name}.yaml").read_text(encoding="utf-8").splitlines()
    return next(line for line in lines if line.startswith("# ") and "@package" not in line)[2:]


def _shown(control: Control, value: Any, pictures: Pictures) -> Any:
    if control.kind in ("picture", "regions", "mask"):
        return None if not isinstance(value, str) else pictures.id_of(value)
    if control.kind == "pictures":
        return [pictures.id_of(path) for path in each(value)]
    return _plain(control, value)


def _plain(control: Control, value: Any) -> Any:
    if control.kind == "mapping":
        return {re.sub("^0x", "#", name): number for name, number in value.items()}
    return ",".join(value) if control.kind == "names" else value
