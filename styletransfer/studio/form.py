"""Describes the page's controls as JSON; converts their values to settings and back."""

import math
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from operator import attrgetter
from typing import Any

from omegaconf import OmegaConf

from styletransfer.errors import UserError
from styletransfer.films.commands.film import film
from styletransfer.films.formats import is_film
from styletransfer.formats.folders import film_and_place
from styletransfer.networks.commands.apply import ApplyConfig, apply
from styletransfer.settings import TrainConfig, each
from styletransfer.settings.changes import FIXED, with_values
from styletransfer.settings.compose import compose, settings_of
from styletransfer.settings.registry import CONFIGS
from styletransfer.settings.schemas import keys, unknown_key
from styletransfer.settings.values import command_line, override
from styletransfer.studio.access import RefusedError
from styletransfer.studio.controls import (
    BRUSHED,
    CONTROLS,
    FOUND,
    HELP,
    HIDDEN,
    PAINTED,
    SKETCHED,
    SOURCE,
    WEIGHT,
    Control,
)
from styletransfer.studio.pictures import PictureShelf
from styletransfer.train import train

# LONGEST: largest length of a text value in characters. MOST_STYLES: largest number of pictures of
# one control; each costs time and memory. MOST_VALUES: largest number of other values in a list.
LONGEST, MOST_STYLES, MOST_VALUES = 300, 16, 64
SECONDS = r"\d{1,6}(\.\d{1,6})?"  # regular expression of a time in seconds
MOST_HASHES = 64  # if a key of a recipe has more input files, it is ignored
ONE_PICTURE = ("picture", "regions", "mask")  # kinds of control whose value is one picture
# The command `apply` paints sketches, and films if `style_source` is not set. BOTH: the page's keys
# that are also keys of `apply`. ACTING: the page's keys that are used for a film in `apply`, see
# `network_values`; drawn regions are not, because they would not move with the film. STEADY:
# value of the key `steady` of `apply`, the weight of the previous painted frame in the next.
BOTH = CONTROLS.keys() & dict(keys(ApplyConfig))
ACTING = BOTH - {*BRUSHED, "region_styles"} | {"content", SOURCE, WEIGHT, "style_scale"}
STEADY = 0.6
# If `style_source` is set: the page's keys that are used for a film (COPYING) and for a picture
# (COPYING_PICTURES), and the values that `color` may have. Other keys keep their defaults.
COPYING = {"content", "style", SOURCE, "size", "color", "color_strength", "style_scale"}
COPYING_PICTURES = COPYING | {"style_rotation", "content_regions", "region_styles", "protect"}
COPYING_COLORS = ("style", "content_luminance", "content_palette")
# Strength of the style in a sketch: USUAL at the default weight of the photograph, STRONGEST at a
# weight of 0. If the weight is 10 times larger, the strength is DECREASE less. A strength above 1
# exaggerates the style.
USUAL, STRONGEST, DECREASE = 0.9, 1.5, 0.45
# Presets that the page shows as buttons, in this order.
LOOKS = ("painted", "faithful", "painterly", "bold")
COMMANDS = {"train": train, "apply": apply, "film": film}


def form(shelf: PictureShelf) -> dict[str, Any]:
    """Return plain values that describe the page's controls and its presets."""
    shown = shown_values(defaults(), shelf)
    groups = {"controls": SKETCHED, "later": PAINTED, "hidden": HIDDEN}
    told = {name: [_described(one, shown) for one in some] for name, some in groups.items()}
    return told | {"looks": looks(), "most_styles": MOST_STYLES}


def _described(control: Control, shown: Mapping[str, Any]) -> dict[str, Any]:
    return asdict(control) | {
        "kind": control.kind,
        "default": shown[control.key],
        "help": HELP.get(control.key, ""),
        "choices": control.choices,
        "of_films": control.key in ACTING,
        "of_pairs": COPYING_COLORS if control.key == "color" else control.key in COPYING_PICTURES,
        "step": 1 if control.kind == "integer" else control.step,
        "steerable": control.key not in (*FIXED, SOURCE),
    }


def default_config() -> TrainConfig:
    """Return the default settings of `train`."""
    config: TrainConfig = _default("train")
    return config


@cache
def defaults() -> dict[str, Any]:
    """Return key -> default value in the command `train`, for each key that the page can set."""
    return page_values(default_config())


def page_values(config: TrainConfig) -> dict[str, Any]:
    """Return key -> value in `config`, for each key that the page can set."""
    return {key: attrgetter(key)(config) for key in CONTROLS}


@cache
def looks() -> list[dict[str, Any]]:
    """Return the presets LOOKS: name, help, and the values that differ from the defaults.

    Each preset has a value for each key in which any of them differs.
    """
    configs = {name: settings_of(compose(train, [f"experiment={name}"])) for name in LOOKS}
    values = {name: page_values(config) for name, config in configs.items()}
    differing = [
        key for key in CONTROLS if any(one[key] != defaults()[key] for one in values.values())
    ]
    presets = []
    for name in LOOKS:
        lines = (CONFIGS / "experiment" / f"{name}.yaml").read_text("utf-8").splitlines()
        heading = next(line for line in lines if line.startswith("# ") and "@" not in line)
        shown = {key: _shown(CONTROLS[key], values[name][key]) for key in differing}
        presets.append({"name": name, "help": heading[2:], "values": shown})
    return presets


def shown_values(values: Mapping[str, Any], shelf: PictureShelf) -> dict[str, Any]:
    """Return key -> value as the page stores it: the id of a picture, or None if unknown."""
    return {key: _shown(CONTROLS[key], values[key], shelf) for key in CONTROLS if key in values}


def changed_settings(values: Mapping[str, Any], shelf: PictureShelf) -> dict[str, Any]:
    """Return key -> value as the page stores it, for keys whose values are not the defaults.

    (KeyError: a key is missing, because another version of the package recorded `values`.)
    """
    shown, default, acting = shown_values(values, shelf), defaults(), set(CONTROLS)
    if values[SOURCE] is not None:  # then only COPYING_PICTURES are used
        default, acting = default | {"color": COPYING_COLORS[0]}, COPYING_PICTURES
    return {key: shown[key] for key in CONTROLS if key in acting and values[key] != default[key]}


def _shown(control: Control, value: Any, shelf: PictureShelf | None = None) -> Any:
    if control.kind in ONE_PICTURE and isinstance(value, list):
        return [_shown(control, one, shelf) for one in value]
    if control.kind in ONE_PICTURE and value not in control.choices:
        path, place = film_and_place(value or "")
        id = shelf.id_of(path) if shelf and value else None
        return f"{id}:{place}" if id and place else id
    if control.kind == "pictures":
        return [shelf.id_of(path) for path in each(value)] if shelf else []
    if control.kind == "mapping":
        return {re.sub("^0x", "#", name): number for name, number in value.items()}
    return ",".join(value) if control.kind == "names" else value


@dataclass(frozen=True)
class RunRequest:
    """A RunRequest is a run that the page asks for."""

    settings: dict[str, Any]  # key -> value, as the page sent them
    overrides: list[str]  # KEY=VALUE words of the command, with paths in place of ids
    config: Any  # settings of the command with `overrides`
    kind: str = "picture"  # picture, sketch or film
    command: str = "train"  # name of the command: train, apply or film
    # The page's settings, if the command is apply or film; None for train, where `config` has them.
    shown: TrainConfig | None = None

    def record(self) -> dict[str, str]:
        """Return name -> text of the files that Hydra would write into .hydra for the command."""
        composed = compose(COMMANDS[self.command], self.overrides, with_hydra=True)
        OmegaConf.set_struct(composed, False)
        hydra = composed.pop("hydra")
        files: dict[str, Any] = {"config": composed, "hydra": {"hydra": hydra}}
        return {
            f"{name}.yaml": OmegaConf.to_yaml(OmegaConf.create(content))
            for name, content in (files | {"overrides": self.overrides}).items()
        }


def read_request(settings: Any, shelf: PictureShelf, sketch: bool = False) -> RunRequest:
    """Return the run for the page's settings, key -> value; the value for a picture is its id.

    A photograph is painted by `train`; with `sketch`, it is painted by `apply` with the style
    network for any style. A film is painted by `film` if `style_source` is set, otherwise by
    `apply` with the same network. Values of keys that are not used then are left out.

    (UserError: a key is unknown, a control cannot have a value, two settings exclude each other, or
    the command line would refuse the settings.)
    """
    values = read_values(settings, shelf)
    kind = "film" if is_film(values.get("content") or "") else "sketch" if sketch else "picture"
    is_pair = values.get(SOURCE) is not None
    if is_pair:
        acting = COPYING if kind == "film" else COPYING_PICTURES
        values = {key: value for key, value in values.items() if key in acting}
    elif kind == "film":
        values = {key: value for key, value in values.items() if key in ACTING}
    is_drawn = values.get("content_regions") not in (None, FOUND)
    if is_drawn and len(each(values.get("style_weights"))) > 1:
        said = "drawn regions have one style each; make the shares equal, or clear the regions"
        raise RefusedError(said, key="style_weights")
    name, overrides = command_name(kind, values), overrides_of(values)
    shown = None if name == "train" else with_values(_default("train", is_pair), values)
    if name == "apply":
        values = network_values(values)
        overrides = overrides_of(values, ApplyConfig)
    config = with_values(_default(name, is_pair), values)
    return RunRequest(dict(settings), overrides, config, kind, name, shown)


@cache
def _default(name: str, is_pair: bool = False) -> Any:
    """Return a command's default settings; for a pair, those that `style_source` brings along."""
    if name == "apply":
        return ApplyConfig()
    given = {SOURCE: "a.png"} if is_pair else {}
    if name == "film":  # its content has no default
        given["content"] = "a.mp4"
    return settings_of(compose(COMMANDS[name], overrides_of(given)))


def command_name(kind: str, settings: Mapping[str, Any]) -> str:
    """Return the command's name for a run: `kind` is "picture", "sketch" or "film"."""
    if kind == "picture":
        return "train"
    return "film" if kind == "film" and settings.get(SOURCE) is not None else "apply"


def overrides_of(values: Mapping[str, Any], schema: type[Any] = TrainConfig) -> list[str]:
    """Return values of settings as KEY=VALUE words of a command with the settings `schema`."""
    return [override(key, value, schema) for key, value in values.items()]


def network_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of `apply` that correspond to `values`, settings of the page.

    The network is the one that can paint in any style. The weight of the photograph becomes
    `strength`, and the size of the strokes `style_size`. (RefusedError: no photograph is chosen.)
    """
    whole = defaults() | dict(values)
    if whole["content"] is None:
        raise RefusedError("choose a photograph", key="content")
    made = {"network": "any", "input": whole["content"]}
    made |= {key: whole[key] for key in ("style", "size", "color")}
    acting = BOTH - {"content_regions"} if whole["content_regions"] == FOUND else BOTH
    made |= {key: values[key] for key in sorted(acting & values.keys())}
    weight = whole[WEIGHT] / defaults()[WEIGHT]
    strength = USUAL - DECREASE * math.log10(weight) if weight > 0 else STRONGEST
    made["strength"] = round(min(max(strength, 0.0), STRONGEST), 3)
    scale = next(iter(each(whole["style_scale"])), 1.0)
    if scale > 0:  # a run refuses others later, but a sketch may have any number
        made["style_size"] = 32 * round(min(max(16 * scale**0.5, 8), 32))
    return made | ({"steady": STEADY} if is_film(whole["content"]) else {})


def read_values(settings: Any, shelf: PictureShelf) -> dict[str, Any]:
    """Return settings of the page, key -> value, with paths in place of the ids of pictures.

    (RefusedError: an unknown key, or a value that its control cannot have.)
    """
    if not isinstance(settings, Mapping):
        raise RefusedError("settings must be a JSON object")
    for key in settings:
        if key not in CONTROLS:
            raise RefusedError(unknown_key(str(key), CONTROLS, "the page offers none of that name"))
    return {key: _read(CONTROLS[key], value, shelf) for key, value in settings.items()}


def recalled(recipe: tuple[Any, Any], shelf: PictureShelf) -> dict[str, Any]:
    """Return a recipe's "settings" that the page can use, and "lost", the keys of the others.

    `recipe` is a result of `reader.recipe` from an untrusted file. A value is used only if its
    control can have it, and an input picture only if the shelf has one with the same SHA-256.
    """
    values, hashes = recipe
    few = [key for key in CONTROLS.keys() & hashes if len(hashes[key]) <= MOST_HASHES]
    found = {key: [*map(shelf.with_hash, hashes[key])] for key in few}
    told, settings = dict(values) | found, {}
    if SOURCE in hashes:  # the preset experiment=paired has set the other keys
        told = {key: value for key, value in told.items() if key in COPYING_PICTURES}
    for key, value in told.items():
        with suppress(UserError, LookupError, TypeError, ValueError, AttributeError):
            one = value if key in found else _shown(CONTROLS[key], value)
            one = one[0] if key in found and CONTROLS[key].kind in ONE_PICTURE else one
            read_values({key: one}, shelf)
            if one not in (None, []):
                settings[key] = one
    if "content_regions" not in settings:
        settings.pop("region_styles", None)
    return {"settings": settings, "lost": sorted(told.keys() - settings.keys())}


def command_of(typed: Sequence[str], stopped: int | None = None, name: str = "train") -> str:
    """Return the command line of a run with the KEY=VALUE words `typed`, for a shell.

    `stopped` is the number of steps after which the run was stopped, or None.
    """
    words = [word for word in typed if not word.startswith("stop_after=")]
    words += [override("stop_after", stopped)] if stopped else []
    return command_line(words, name)


def _read(control: Control, value: Any, shelf: PictureShelf) -> Any:
    """Convert a page's value to a setting's value (RefusedError: it is not possible)."""
    key, most = control.key, MOST_STYLES if control.kind == "pictures" else MOST_VALUES
    if isinstance(value, list | Mapping) and len(value) > most:
        raise RefusedError(f"{key} holds {len(value)} values; choose at most {most}", key=key)
    match control.kind:
        case "picture" if key == SOURCE and isinstance(value, list):
            return [_frame(key, one, shelf) for one in value]
        case "picture" | "regions" | "mask":
            return None if value is None else _path(key, value, shelf)
        case "pictures":
            ids = value if isinstance(value, list) else [value]
            paths = [_path(key, id, shelf) for id in ids]
            return paths[0] if len(paths) == 1 else paths
        case "numbers" if isinstance(value, list):
            return [_number(key, number) for number in value]
        case "integer" if type(value) is float and not value.is_integer():
            raise RefusedError(f"{key} must be a whole number", key=key)
        case "number" | "integer" | "numbers":
            return _number(key, value)
        case "names":
            return [name for word in _text(key, value).split(",") if (name := word.strip())]
        case "mapping":
            return _mapping(key, value)
        case "choice" if value not in control.choices:
            words = ", ".join(control.choices)
            raise RefusedError(f"{key}={value!s:.80} must be one of {words}", key=key)
        case _:
            return _text(key, value)


def _path(key: str, value: Any, shelf: PictureShelf) -> str:
    if value in CONTROLS[key].choices:
        return str(value)
    picture = shelf.find(_text(key, value))
    if key != "content" and is_film(picture.path):
        raise RefusedError(f"{key} takes a picture, and {picture.name} is a film", key=key)
    return picture.path


def _frame(key: str, value: Any, shelf: PictureShelf) -> str:
    """Return the path of "ID:4.8s", the frame of a film at a time, or of "ID", a picture."""
    id, _, place = _text(key, value).partition(":")
    if not place:
        return _path(key, id, shelf)
    film = shelf.find(id).path
    if not is_film(film) or not re.fullmatch(f"{SECONDS}s", place):
        raise RefusedError(f"{key} takes a frame as FILM:4.8s", key=key)
    return f"{film}:{place}"


def _text(key: str, value: Any) -> str:
    if not isinstance(value, str) or len(value) > LONGEST or not value.isprintable():
        raise RefusedError(f"{key} must be a text of at most {LONGEST} characters", key=key)
    return value


def _number(key: str, value: Any) -> Any:
    # True, NaN and infinity are refused.
    if type(value) not in (int, float) or not abs(value) <= sys.float_info.max:
        raise RefusedError(f"{key} must be a number", key=key)
    return value


def _mapping(key: str, value: Any) -> dict[str, int]:
    """Return colour -> whole number; in a colour, "0x" replaces "#", which Hydra refuses."""
    if not isinstance(value, Mapping):
        raise RefusedError(f"{key} must give each colour a number", key=key)
    for name, number in value.items():
        if not re.fullmatch(r"[a-z]{1,30}|#[0-9a-f]{6}", name):
            raise RefusedError(f"{key}: {name[:80]!r} is no name of a colour", key=key)
        if type(number) is not int:  # isinstance would accept True
            raise RefusedError(f"{key}.{name} must be a whole number", key=key)
    return {name.replace("#", "0x"): number for name, number in value.items()}
