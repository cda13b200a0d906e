"""Loads Jinja templates, from which HTML pages are made."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


def templates(package: str) -> "Environment":
    """Return a Jinja environment, which escapes values for HTML, with `templates/` of `package`."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
