"""Where the files are that the package needs beside its code: configs and default pictures."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def resource(name: str) -> Path:
    """Return the path of `configs` or `assets`.

    An installed package holds them inside; in a checkout they lie beside the package.
    """
    inside = PACKAGE / name
    return inside if inside.exists() else PACKAGE.parent / name
