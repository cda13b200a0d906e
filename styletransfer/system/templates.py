"""Loads Jinja templates, from which HTML pages are made."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


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
