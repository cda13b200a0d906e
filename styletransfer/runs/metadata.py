"""Writes into a picture file how the picture was made: the command, and hashes of the inputs.

This text is JSON in an XMP packet (metadata), which every picture format can hold. It depends on
nothing but the recipe of the run, and names files without their folders.
"""

import html
import json
import logging
import os
import re
import shlex
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import OmegaConf

from styletransfer.errors import UserError
from styletransfer.pictures.decode import xmp_packet
from styletransfer.runs.folder import FREE_KEYS
from styletransfer.runs.recipe import Recipe, settings
from styletransfer.settings import ASSETS
from styletransfer.settings.commands import CONFIGS, schema_of
from styletransfer.settings.schemas import path_keys
from styletransfer.settings.values import command, override, with_values

logger = logging.getLogger(__name__)

# Largest size of an XMP packet in bytes; a JPEG file has room for 65502.
LONGEST = 60_000
# IPTC's term for media that were changed by a trained network.
SOURCE = "http://cv.iptc.org/newscodes/digitalsourcetype/compositeWithTrainedAlgorithmicMedia"
PACKET = """<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/">
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about=""
 xmlns:Iptc4xmpExt="http://iptc.org/std/Iptc4xmpExt/2008-02-29/"
 xmlns:styletransfer="urn:x-styletransfer#" Iptc4xmpExt:DigitalSourceType="{}"
 styletransfer:recipe="{}"/></rdf:RDF></x:xmpmeta>
<?xpacket end="r"?>"""
# Pattern of the recipe in an XMP packet: an attribute, which other programs may turn to an element.
_RECIPE = re.compile(r'styletransfer:recipe(?:="([^"]*)"|>([^<]*)<)')


def metadata(name: str, recipe: Recipe, *more: str) -> bytes:
    """Return the XMP packet of a picture that the command `name` makes.

    `more` are further KEY=VALUE words of the command. A packet that would be too long, as with
    hundreds of styles, is left out with a warning: the result is then empty.
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
    # Not quote=True, which writes ' as &#x27;: the library Exiv2 would read that as a space.
    text = html.escape(json.dumps(carried), quote=False).replace('"', "&quot;")
    packet = PACKET.format(SOURCE, text).encode()
    if len(packet) > LONGEST:
        logger.warning("the recipe is too long for a picture file, which is written without it")
        return b""
    return packet


def lines_of(path: Path) -> list[str]:
    """Return the recipe in a picture file, a line "key: text" for each key, safe to print.

    The file may come from anybody: unprintable characters are removed, and the command is quoted
    again for a shell. (UserError: `path` is no picture, or holds no recipe that can be read.)
    """
    recipe, _ = _read(path)
    return ["".join(filter(str.isprintable, f"{key}: {text}")) for key, text in recipe.items()]


def settings_in(path: Path) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Return key -> value of the settings, and key -> SHA-256 of each input, of a pastiche.

    The file may come from anybody: values are plain values, unchecked, and nothing in them is
    resolved. (UserError: `path` holds no recipe of `train` that can be read.)
    """
    recipe, (name, *words) = _read(path)
    if name != "train":
        raise UserError(f"{path} was not made by train")
    values, mark = {}, "sha256 of "
    for word in words:
        with suppress(HydraException, ValueError, TypeError, RecursionError):
            (parsed,) = OverridesParser.create().parse_overrides([word])
            values[parsed.key_or_group] = json.loads(json.dumps(parsed.value()))
    hashes = {key.removeprefix(mark): str(recipe[key]).split() for key in recipe if mark in key}
    return values, hashes


def _read(path: Path) -> tuple[dict[str, Any], list[str]]:
    """Return the recipe in a picture file, and the name and words of its command (UserError)."""
    packet = xmp_packet(path)[:LONGEST].decode(errors="replace")
    try:
        found: Any = _RECIPE.search(packet)
        recipe = json.loads(html.unescape(found[1] or found[2]))
        _, name, *words = shlex.split(str(recipe["command"]))
        recipe["command"] = command(words, name)
        return dict(recipe), [name, *words]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"{path} carries no recipe of styletransfer, or a damaged one") from error


@cache
def _defaults(name: str) -> dict[str, Any]:
    """Return key -> default value of the command `name`."""
    given: Any = OmegaConf.to_container(OmegaConf.load(CONFIGS / f"{name}.yaml"))
    values = {key: value for key, value in given.items() if key not in ("defaults", "hydra")}
    schema = schema_of(name)()
    return settings(with_values(schema, values) if values else schema)


def _without_folder(value: Any) -> Any:
    """Return one or several paths without their folders; a bundled picture as `content/NAME`."""
    if isinstance(value, list):
        return [_without_folder(path) for path in value]
    bundled = f"{os.path.realpath(ASSETS)}{os.sep}"
    return str(value).removeprefix(bundled) if str(value).startswith(bundled) else Path(value).name
