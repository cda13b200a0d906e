"""Reads the recipe that a picture or film carries; `text_of` in recipe.py makes it."""

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from styletransfer.errors import UserError
from styletransfer.runs.carriers import carrier_of
from styletransfer.runs.recipe import command_defaults
from styletransfer.runs.record import FREE_KEYS
from styletransfer.settings.registry import commands
from styletransfer.settings.values import command_line, override


def carried(path: Path) -> dict[str, str]:
    """Return the recipe in a picture file or in a film: key -> text.

    Its "command" is quoted for a shell. (UserError: no recipe, or none that can be read.)
    """
    text = carrier_of(path).recipe(path)
    try:
        recipe = json.loads(text)
        _, name, *words = shlex.split(str(recipe["command"]))
        texts = {key: str(text) for key, text in recipe.items()}
        return texts | {"command": command_line(words, name)}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"{path} carries no recipe of styletransfer, or a damaged one") from error


def lines_of(recipe: Mapping[str, str]) -> list[str]:
    """Return a line "key: text" for each key of a recipe, without unprintable characters."""
    lines = (f"{key}: {text}" for key, text in recipe.items())
    return ["".join(filter(str.isprintable, line)) for line in lines]


def settings_in(recipe: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    """Return the command's name, and key -> value of each of its words.

    The recipe may come from anybody. Only words are accepted that this module would write: a key
    that can change the picture, and a value without functions or ${...}. (UserError: any other.)
    """
    _, name, *words = shlex.split(recipe["command"])
    command = commands().get(name)
    if command is None or not command.repeatable or "steered" in recipe:
        raise UserError(f"{name!r} cannot be repeated, or was steered: no command makes the same")
    known, values = {*command_defaults(name)} - ({*FREE_KEYS} - {"stop_after"}), {}
    for word in words:
        try:
            parsed = OverridesParser.create().parse_override(word)
            key, value = parsed.key_or_group, parsed.value()
            is_ours = key in known and override(key, value) == word
        except (HydraException, ValueError, TypeError, LookupError, RecursionError):
            is_ours = False
        if not is_ours:
            raise UserError(f"the recipe holds {word[:80]!r}, which is no setting of a picture")
        values[key] = value
    return name, values
