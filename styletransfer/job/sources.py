"""Reads the pictures that settings name, from files or from memory, and checks their shapes."""

import logging
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Self

import torch
from torch import Tensor

from styletransfer.errors import UserError, about
from styletransfer.formats.folders import files_at, film_and_place, in_folder
from styletransfer.job.job import STARTS, InputFiles
from styletransfer.job.scales import Pyramid
from styletransfer.pictures import images
from styletransfer.pictures.images import Picture
from styletransfer.pictures.labels import read_regions
from styletransfer.pictures.masks import check_aspect, read_mask
from styletransfer.pictures.regions import Regions
from styletransfer.pictures.transparency import fill_transparent, has_margins
from styletransfer.settings import StyleTransferConfig, each
from styletransfer.settings.schemas import keys, named_files

logger = logging.getLogger(__name__)

# Settings that name pictures. `init` may also be content, style or noise.
PICTURE_KEYS = (
    *("content", "style", "style_source", "style_detail", "content_regions", "style_regions"),
    *("protect", "init"),
)
# Pattern of a `content` that names an aspect ratio, width:height such as 4:3, instead of a file.
SHAPE = re.compile(r"([1-9]\d{0,3}):([1-9]\d{0,3})")
# Smallest side of a picture in pixels. An enlargement of a smaller picture would be a blur without
# content or style.
SMALLEST_SIDE = 8


@dataclass(frozen=True)
class Sources:
    """`Sources` are the pictures that the settings of a job name, at the size of their files."""

    content: Picture
    styles: tuple[Picture, ...]  # pictures of `style`, before `style_rotation`
    # Photographs of `style_source`, resized to the size of their paintings in `styles`; or ().
    painted_from: tuple[Picture, ...]
    detail: Picture | None  # picture of `style_detail`, or None
    content_regions: Regions | None
    style_regions: tuple[Regions, ...]  # the regions of each style; () without label pictures
    protected: Tensor | None  # (1, 1, H, W) in [0, 1], the mask of `protect`
    start: Picture | None  # picture of `init`; None if `init` is content, style or noise

    @classmethod
    def read(
        cls, config: StyleTransferConfig, pyramid: Pyramid, given: Mapping[str, Any] | None = None
    ) -> Self:
        """Read every picture that `config` names.

        `given` maps settings to pictures in memory, which replace their files: a Picture; a list of
        Pictures for `style` and `style_source`; for regions and masks, what `read_regions` and
        `read_mask` take. `pyramid` gives the size of the grey content image that a shape such as
        4:3 asks for.

        Raises UserError if a picture cannot be read, if a photograph, mask or label picture does
        not fit its picture, or if there are more or fewer photographs or label pictures of styles
        than styles.
        """
        named = {key: getattr(config, key) for key in PICTURE_KEYS} | dict(given or {})
        content = _content(named["content"], pyramid)
        with about("style"):
            styles = _styles("style", named["style"])
        with about("style_source"):
            painted_from = _painted_from(named["style_source"], styles)
        with about("content_regions"):
            labels = None if config.content_regions == "auto" else named["content_regions"]
            content_regions = _regions(labels, "content_regions", content)
        with about("protect"):
            protected = _mask(named["protect"], content)
        return cls(
            content,
            styles,
            painted_from,
            _picture("style_detail", named["style_detail"]),
            content_regions,
            _style_regions(named["style_regions"], styles),
            protected,
            _start(named["init"]),
        )


def _picture(key: str, named: Picture | str | None) -> Picture | None:
    """Return the picture of a setting, or None if `named` is None; UserError if unreadable."""
    with about(key):
        return images.read(named) if isinstance(named, str) else named


def _content(named: Picture | str, pyramid: Pyramid) -> Picture:
    """Return the content image; for a shape such as 4:3, a grey picture (one pixel in memory)."""
    if isinstance(named, str) and (shape := SHAPE.fullmatch(named)):
        size = pyramid.pastiche((int(shape[2]), int(shape[1])))
        return Picture(torch.full((1, 3, 1, 1), 0.5).expand(1, 3, *size), name=named)
    content = _picture("content", named)
    assert content is not None
    return content


def _styles(key: str, named: Any) -> tuple[Picture, ...]:
    """Return the pictures of `key`, style or style_source, read from files or given in memory."""
    if isinstance(named, list | tuple) and any(isinstance(one, Picture) for one in named):
        return tuple(named)
    return tuple(map(images.read, files_of(key, named)))


def _painted_from(named: Any, styles: Sequence[Picture]) -> tuple[Picture, ...]:
    """Return the photographs of which the styles are paintings, resized to them; () for None."""
    if named is None:
        return ()
    found = _styles("style_source", named)
    if (count := len(found)) != len(styles):
        raise UserError(
            f"style_source names {count} photograph{'s' * (count != 1)}, and style {len(styles)} "
            f"painting{'s' * (len(styles) != 1)}; give one photograph for each, in their order"
        )
    fitted = []
    for photo, style in zip(found, styles, strict=True):
        check_aspect(photo.size, style.size, f"style_source={photo.name}")
        if has_margins(style):
            raise UserError(
                f"style_source needs {style.name} without transparent margins; crop both files"
            )
        rgb = images.resize(fill_transparent(photo), style.size)
        if torch.equal(rgb, fill_transparent(style)):
            raise UserError(
                f"style_source shows the same picture as style, {style.name}; name the photograph "
                "of which it is a painting, or leave style_source out"
            )
        fitted.append(Picture(rgb, name=photo.name))
    return tuple(fitted)


def _start(named: Picture | str) -> Picture | None:
    if isinstance(named, str):
        if named in STARTS:
            return None
        if not os.path.exists(film_and_place(named)[0]):
            raise UserError(
                f"unknown init {named!r}; choose content, style, noise or a picture file"
            )
    return _picture("init", named)


def _regions(named: Any, name: str, picture: Picture) -> Regions | None:
    """Return the regions of the label picture of `picture`, or None; log them in one line."""
    if named is None:
        return None
    regions = read_regions(named, name)
    check_aspect(regions.size, picture.size, regions.source)
    uncovered = 100 * (1 - sum(regions.shares))
    rest = f"; {uncovered:.2g} % of the picture is in no region" if uncovered > 0.1 else ""
    logger.info("%s: %s%s", regions.source, regions.listed(), rest)
    return regions


def _style_regions(named: Any, styles: Sequence[Picture]) -> tuple[Regions, ...]:
    """Return the regions of each style image; () if `named` is None."""
    if named is None:
        return ()
    is_folder = isinstance(named, str) and os.path.isdir(named)
    sources = in_folder(named) if is_folder else each(named)
    if (count := len(sources)) != len(styles):
        raise UserError(
            f"style_regions names {count} label picture{'s' * (count != 1)}, and style "
            f"{len(styles)} image{'s' * (len(styles) != 1)}; give one for each, in their order, as "
            "a list in brackets"
        )
    names = [f"style_regions {n}" for n in range(1, count + 1)] if count > 1 else ["style_regions"]
    found = map(_regions, sources, names, styles)
    return tuple(regions for regions in found if regions is not None)


def _mask(named: Any, content: Picture) -> Tensor | None:
    """Return a mask (1, 1, H, W), 1 where pixels are protected; None if `named` is None."""
    if named is None:
        return None
    mask = read_mask(named, "protect")
    name = f"protect={named}" if isinstance(named, str) else "protect"
    check_aspect(images.size_of(mask), content.size, name)
    return mask


def files_read(config: Any, free: Collection[str] = ()) -> InputFiles:
    """Return (setting, path) for every input file that the settings of a command name.

    A folder is replaced by the pictures in it, and a frame of a film by the film. Settings in
    `free` and the run folder of `resume` are left out.
    """
    schema = type(config)
    return [
        (key, film_and_place(path)[0])
        for key, field in keys(schema)
        if field.metadata.get("path") and not field.metadata.get("written")
        if key not in ("resume", *free)
        for name in named_files(schema, key, attrgetter(key)(config))
        for path in files_at(name)
    ]


def files_of(key: str, value: str | Sequence[str] | None) -> list[str]:
    """Return the files that a setting names, and those in named folders; UserError if none."""
    files: list[str] = []
    for name in each(value):
        named = files_at(name)
        if not named:
            raise UserError(f"{key}={name} holds no picture; name a folder of pictures, or a file")
        files += named
    if not files:
        raise UserError(f"{key} names no picture; name at least one", key)
    return files


def check_side(picture: Picture, key: str | None = None) -> None:
    """Raise UserError if a side of a picture is shorter than SMALLEST_SIDE."""
    height, width = picture.size
    if min(height, width) < SMALLEST_SIDE:
        least = f"each side needs at least {SMALLEST_SIDE}"
        raise UserError(f"{picture.name} shows {width} x {height} pixels; {least}", key)
