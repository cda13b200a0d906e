"""What the keys of a job name: picture files, folders of them, or pictures in memory."""

import os
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

from styletransfer.config import StyleTransferConfig, each
from styletransfer.errors import UserError
from styletransfer.pictures import images
from styletransfer.pictures.images import Picture
from styletransfer.pictures.labels import read_regions
from styletransfer.pictures.regions import Regions
from styletransfer.settings.paths import files_at, in_folder
from styletransfer.settings.schemas import keys, named_files

# Keys that name pictures; init may be a word as well.
PICTURE_KEYS = (
    "content",
    "style",
    "style_detail",
    "content_regions",
    "style_regions",
    "protect",
    "init",
)

# By the key whose files it stands for, what is in memory: a Picture, for style also several; for
# regions and masks what `read_regions` and `read_mask` take.
Given = Mapping[str, Any]


def files_read(config: Any) -> list[tuple[str, str]]:
    """Return the key and the path of every file that any command's settings name to be read.

    Folders stand for the pictures in them.
    """
    schema = type(config)
    return [
        (key, path)
        for key, field in keys(schema)
        if field.metadata.get("path") and not field.metadata.get("written")
        for name in named_files(schema, key, attrgetter(key)(config))
        for path in files_at(name)
    ]


def read_one(key: str, path: str | None, given: Given) -> Picture:
    """Return the picture of a key that has one; a UserError says why it cannot be read."""
    if key in given:
        picture: Picture = given[key]
        return picture
    assert path is not None
    return images.read(path)


def read_all(key: str, value: str | Sequence[str], given: Given) -> list[Picture]:
    """Return one picture, several, or all of a folder; a UserError says why it cannot."""
    if key not in given:
        return [images.read(path) for path in files_of(key, value)]
    source = given[key]
    pictures = [source] if isinstance(source, Picture) else list(source)
    if not pictures:
        raise UserError(f"{key} holds no picture; give at least one")
    return pictures


def files_of(key: str, value: str | Sequence[str] | None) -> list[str]:
    """Return the files that a key names: one, several, or a folder's (UserError: there is none)."""
    files: list[str] = []
    for name in each(value):
        named = files_at(name)
        if not named:
            raise UserError(f"{key}={name} holds no picture; name a folder of pictures, or a file")
        files += named
    if not files:
        raise UserError(f"{key} names no picture; name at least one")
    return files


def read_content_regions(config: StyleTransferConfig, given: Given) -> Regions | None:
    """Return the regions of the content image, None for a picture that is not divided.

    Refused are also keys that ask for regions where there are none.
    """
    source = given.get("content_regions", config.content_regions)
    if source is not None:
        return read_regions(source, "content_regions")
    for key in ("style_regions", "region_styles"):
        if key in given or getattr(config, key):
            raise UserError(f"{key} needs content_regions: name the parts of the content")
    return None


def read_style_regions(
    config: StyleTransferConfig, given: Given, styles: int
) -> list[Regions] | list[None]:
    """Return the regions of each style image, of one label picture or of masks for a single one."""
    source = given.get("style_regions", config.style_regions)
    if source is None:
        return [None] * styles
    if config.region_styles:
        raise UserError("style_regions and region_styles exclude each other; leave one of them out")
    if styles == 1:
        return [read_regions(source, "style_regions")]
    is_folder = isinstance(source, str) and os.path.isdir(source)
    named = in_folder(source) if is_folder else each(source)
    if (count := len(named)) != styles:
        raise UserError(
            f"style_regions names {count} label picture{'s' * (count != 1)} but there are {styles} "
            "styles; give one for each, in their order, as a list in brackets"
        )
    return [read_regions(one, f"style_regions, {n}") for n, one in enumerate(named, start=1)]
