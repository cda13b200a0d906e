"""Folders of pictures."""

import os
from pathlib import Path

# What counts as a picture in a folder.
EXTENSIONS = (".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff", ".bmp", ".gif")


def in_folder(name: str | os.PathLike[str]) -> list[str]:
    """Return the paths of the pictures in a folder, in the order of their names."""
    files = sorted(path for path in Path(name).iterdir() if path.suffix.lower() in EXTENSIONS)
    return list(map(str, files))


def files_at(name: str) -> list[str]:
    """Return the pictures of a folder, and of any other name that name itself."""
    return in_folder(name) if os.path.isdir(name) else [name]
