"""Paths of the files that the package needs beside its code: configs, pictures, templates."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment

PACKAGE = Path(__file__).resolve().parent


def resource(name: str) -> Path:
    """Return the path of the folder `name`, "configs" or "assets".

    The folder is inside an installed package, and beside the package in a Git checkout.
    """
    inside = PACKAGE / name
    return inside if inside.exists() else PACKAGE.parent / name


def templates(package: str) -> "Environment":
    """Return a Jinja environment with the files in `templates/` of the package named `package`.

    A value that a template shows is escaped for HTML; a missing value is an error.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
