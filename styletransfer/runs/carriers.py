"""The file types that can hold a recipe, a text that says how the file was made.

This file defines pictures; the package `films` defines films.
"""

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from styletransfer.settings.registry import offered

if TYPE_CHECKING:
    from torch import Tensor

# Largest size in bytes of an XMP packet (metadata) with a recipe. A JPEG file can hold 65502.
LONGEST = 60_000
# Pattern of the recipe in an XMP packet. `xmp_of` writes it as an attribute; another program that
# saves the picture again may write it as an element.
_RECIPE = re.compile(r'styletransfer:recipe(?:="([^"]*)"|>([^<]*)<)')


@dataclass(frozen=True)
class Carrier:
    """A Carrier is a file type that can hold a recipe; a command's Python file may define one."""

    holds: Callable[[Path], bool]  # path -> whether it has this file type; PICTURE takes any path
    recipe: Callable[[Path], str]  # path of a file -> text of the recipe in it, or ""
    images: Callable[[Path], Iterator["Tensor"]]  # path -> images (1, C, H, W) that `info` compares


def picture_recipe(path: Path) -> str:
    """Return the recipe's text in a picture file, or "" (UserError if the file is unreadable)."""
    from styletransfer.formats import xmp_packet

    found = _RECIPE.search(xmp_packet(path)[:LONGEST].decode(errors="replace"))
    return html.unescape(found[1] or found[2]) if found else ""


def picture_layers(path: Path) -> Iterator["Tensor"]:
    """Yield a picture's colours (1, 3, H, W), and its transparency (1, 1, H, W) if it has any."""
    from styletransfer.pictures import images

    picture = images.read(path)
    yield from (one for one in (picture.rgb, picture.alpha) if one is not None)


PICTURE = Carrier(lambda path: True, picture_recipe, picture_layers)


def carrier_of(path: Path) -> Carrier:
    """Return the Carrier whose `holds` is true for `path`, or PICTURE if there is none."""
    return next((kind for kind in offered(Carrier) if kind.holds(path)), PICTURE)
