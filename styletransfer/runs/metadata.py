"""Writes into a picture or film how it was made: the command, and hashes of the inputs.

This text is JSON, in an XMP packet (metadata), which every picture format can hold, or in the
comment of a film. It depends on nothing but the recipe of the run, and names files without folders.
"""

import html
import json
import logging
import os
import re
import shlex
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import OmegaConf

from styletransfer.errors import UserError
from styletransfer.pictures.decode import xmp_packet
from styletransfer.pictures.images import SOURCE, xmp_of
from styletransfer.runs import FREE_KEYS
from styletransfer.runs.recipe import Recipe, settings
from styletransfer.settings import ASSETS
from styletransfer.settings.commands import CONFIGS, schema_of
from styletransfer.settings.schemas import path_keys
from styletransfer.settings.values import command, override, with_values

logger = logging.getLogger(__name__)

# Commands whose pictures and films can be painted again from their recipes.
REPEATED = ("train", "apply", "film", "mix")
# Largest size of an XMP packet in bytes; a JPEG file has room for 65502.
LONGEST = 60_000
# Pattern of the recipe in an XMP packet: an attribute, which other programs may turn to an element.
_RECIPE = re.compile(r'styletransfer:recipe(?:="([^"]*)"|>([^<]*)<)')


def text_of(name: str, recipe: Recipe, *more: str) -> str:
    """Return the text that a picture or film carries, which the command `name` makes.

    `more` are further KEY=VALUE words of the command. A text that would be too long for a picture
    file, as with hundreds of styles, is left out with a warning: the result is then empty.
    """
    paths, default = path_keys(schema_of(name)), _defaults(name)
    words = [
        override(key, _without_folder(value) if key in paths else value)
        for key, value in recipe["config"].items()
        if key not in FREE_KEYS and value != default[key]
    ]
    carried = {"command": command([*words, *more], name), "version": recipe["version"]}
    carried |= {f"sha256 of {key}": " ".join(hashes) for key, hashes in recipe["files"].items()}
    if "steered" in recipe:
        carried["steered"] = "settings changed during the run; the command has the last ones"
    carried["digital source type"] = SOURCE
    text = json.dumps(carried)
    if len(xmp_of(text)) > LONGEST:
        logger.warning("the recipe is too long for a picture file, which is written without it")
        return ""
    return text


def metadata(name: str, recipe: Recipe, *more: str) -> bytes:
    """Return `text_of` the same arguments as an XMP packet."""
    return xmp_of(text_of(name, recipe, *more))


def carried(path: Path, comment: str | None = None) -> dict[str, str]:
    """Return the recipe in a picture file, or in the comment of a film: key -> text.

    Its "command" is quoted for a shell. (UserError: no recipe, or none that can be read.)
    """
    if comment is None:
        found = _RECIPE.search(xmp_packet(path)[:LONGEST].decode(errors="replace"))
        comment = html.unescape(found[1] or found[2]) if found else ""
    try:
        recipe = json.loads(comment)
        _, name, *words = shlex.split(str(recipe["command"]))
        return {key: str(text) for key, text in recipe.items()} | {"command": command(words, name)}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"{path} carries no recipe of styletransfer, or a damaged one") from error


def lines_of(recipe: Mapping[str, str]) -> list[str]:
    """Return a line "key: text" for each key of a recipe, without unprintable characters."""
    lines = (f"{key}: {text}" for key, text in recipe.items())
    return ["".join(filter(str.isprintable, line)) for line in lines]


def settings_in(recipe: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    """Return the command's name, and key -> value of each of its words.

    The recipe may come from anybody. Only words are accepted that this module would write: a key
    that can change the picture, and a value without functions or ${...}. (UserError: others.)
    """
    _, name, *words = shlex.split(recipe["command"])
    if name not in REPEATED or "steered" in recipe:
        raise UserError(f"{name!r} cannot be repeated, or was steered: no command makes the same")
    known, values = {*_defaults(name)} - ({*FREE_KEYS} - {"stop_after"}), {}
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


def default_config(name: str) -> Any:
    """Return the settings of the command `name` when nothing is typed."""
    given: Any = OmegaConf.to_container(OmegaConf.load(CONFIGS / f"{name}.yaml"))
    values = {key: value for key, value in given.items() if key not in ("defaults", "hydra")}
    schema = schema_of(name)()
    return with_values(schema, values) if values else schema


@cache
def _defaults(name: str) -> dict[str, Any]:
    """Return key -> default value of the command `name`."""
    return settings(default_config(name))


def _without_folder(value: Any) -> Any:
    """Return one or several paths without their folders; a bundled picture as `content/NAME`."""
    if isinstance(value, list):
        names = [_without_folder(path) for path in value]
        return names[0] if len(names) == 1 else names
    bundled = f"{os.path.realpath(ASSETS)}{os.sep}"
    return str(value).removeprefix(bundled) if str(value).startswith(bundled) else Path(value).name
