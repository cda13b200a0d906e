"""Finds the folders of files that are not code: configs, and assets (pictures, networks)."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def resource(name: str) -> Path:
    """Return the path of the folder `name`, "configs" or "assets".

    The folder is inside an installed package, and beside the package in a Git checkout.
    """
    inside = PACKAGE / name
    return inside if inside.exists() else PACKAGE.parent / name
