"""Reads, checks, rotates and resizes the pictures that the settings of a job name."""

import logging
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor

from styletransfer.errors import UserError, about
from styletransfer.job.job import STARTS, pastiche_size, style_scales
from styletransfer.job.memory import picture_bytes
from styletransfer.job.regions import Style, check_scales, make_regions
from styletransfer.objective.inputs import Inputs
from styletransfer.pictures import images
from styletransfer.pictures.color import recolored
from styletransfer.pictures.formats import files_at, in_folder
from styletransfer.pictures.images import Picture
from styletransfer.pictures.regions import Regions, check_aspect, read_mask, read_regions
from styletransfer.settings import StyleTransferConfig, each
from styletransfer.settings.schemas import keys, named_files
from styletransfer.system.devices import choose_device
from styletransfer.system.memory import free_bytes, readable

logger = logging.getLogger(__name__)

# Settings that name pictures; init may also be a word such as "noise".
PICTURE_KEYS = (
    *("content", "style", "style_detail", "content_regions", "style_regions"),
    *("protect", "init"),
)

# Setting -> picture in memory that replaces its file: a Picture, a list of them for style, and for
# regions and masks what `read_regions` and `read_mask` take.
Given = Mapping[str, Any]
# Bytes per pixel of a style image: three channels of float32, and a copy while it is resized.
PIXEL_BYTES = 24
# Pattern of a `content` that names an aspect ratio, width:height such as 4:3, instead of a file.
SHAPE = re.compile(r"([1-9]\d{0,3}):([1-9]\d{0,3})")
# Smallest side of a picture in pixels. A smaller one, enlarged, is a blur without content or style.
SMALLEST_SIDE = 8


def files_read(config: Any) -> list[tuple[str, str]]:
    """Return the setting and the path of every file that a command's settings name to be read.

    A folder is replaced by the pictures in it. The run folder of `resume` is left out.
    """
    schema = type(config)
    return [
        (key, path)
        for key, field in keys(schema)
        if field.metadata.get("path") and not field.metadata.get("written") and key != "resume"
        for name in named_files(schema, key, attrgetter(key)(config))
        for path in files_at(name)
    ]


def read_one(key: str, path: str | None, given: Given) -> Picture:
    """Return the picture of a setting, in memory or in a file (UserError: it cannot be read)."""
    with about(key):
        return given[key] if key in given else images.read(path or "")


def files_of(key: str, value: str | Sequence[str] | None) -> list[str]:
    """Return the files that a setting names, those of folders included (UserError: none)."""
    files: list[str] = []
    for name in each(value):
        named = files_at(name)
        if not named:
            raise UserError(f"{key}={name} holds no picture; name a folder of pictures, or a file")
        files += named
    if not files:
        raise UserError(f"{key} names no picture; name at least one", key)
    return files


def read_content_regions(config: StyleTransferConfig, given: Given) -> Regions | None:
    """Return the regions of the content image, or None if it has none.

    UserError: the label picture cannot be read, or is missing and other keys need it.
    """
    source = given.get("content_regions", config.content_regions)
    if source is not None:
        with about("content_regions"):
            return read_regions(source, "content_regions")
    for key in ("style_regions", "region_styles"):
        if key in given or getattr(config, key, None):
            raise UserError(f"{key} needs content_regions, a label picture of the content")
    return None


def read_style_regions(
    config: StyleTransferConfig, given: Given, styles: int
) -> list[Regions] | list[None]:
    """Return the regions of each style image, None for images without any."""
    source = given.get("style_regions", config.style_regions)
    if source is None:
        return [None] * styles
    if config.region_styles:
        raise UserError("style_regions and region_styles exclude each other; leave one of them out")
    is_folder = isinstance(source, str) and os.path.isdir(source)
    named = in_folder(source) if is_folder else each(source)
    if (count := len(named)) != styles:
        raise UserError(
            f"style_regions names {count} label picture{'s' * (count != 1)}, and style {styles} "
            f"image{'s' * (styles != 1)}; give one for each, in their order, as a list in brackets"
        )
    names = [f"style_regions {n}" for n in range(1, count + 1)] if styles > 1 else ["style_regions"]
    return list(map(read_regions, named, names))


@dataclass(frozen=True)
class Loaded:
    """`Loaded` are the pictures of a job."""

    pictures: Inputs  # content, styles and regions at the pastiche's size
    names: list[str]  # names of the content image and of each style image, for messages
    # (1, 3, h, w), the picture to begin with, or None for what `config.init` names.
    start: Tensor | None
    alpha: Tensor | None  # (1, 1, H, W), the content's transparency, or None


def load(
    config: StyleTransferConfig, given: Given | None = None, *, enlarge: bool = True
) -> Loaded:
    """Read every picture that `config` names.

    A style's transparent margins are cut off, and its visible colours spread into the remaining
    transparent pixels, so that no invisible colour enters a statistic.

    `given` holds pictures already in memory. Without `enlarge`, as for a dry run, pictures smaller
    than the pastiche keep their size. (UserError: a picture cannot be read, is fully transparent or
    too small; or weights, scales, regions or masks do not fit.)
    """
    given = given or {}
    content = _read_content(config, given)
    divided = read_content_regions(config, given)
    styles = _read_styles(config, given)
    check_side(content, "content")
    for style in styles:
        check_side(style.picture, "style")
    with about("content_regions"):
        if divided is not None:
            _check_regions(divided, content)
    with about("protect"):
        mask = _read_protected(config, given, content)
    if enlarge:
        check_room(config, content.size, len(styles))
        content = replace(content, rgb=content.rgb.contiguous())
    if max(content.size) < config.size:
        height, width = content.size
        logger.info("%s: enlarged from %d x %d pixels", content.name, width, height)
    content = _fitted(content, config.size, enlarge)
    protected = None if mask is None else images.resize(mask, content.size)
    styles = _fitted_styles(config, styles, content, enlarge)
    return Loaded(
        pictures=Inputs(
            content=images.fill_transparent(content),
            styles=tuple(images.fill_transparent(style.picture) for style in styles),
            regions=make_regions(config, styles, divided, content.size, protected),
            protected=protected,
        ),
        names=[content.name, *(style.picture.name for style in styles)],
        start=_read_start(config, given),
        alpha=content.alpha,
    )


def _read_content(config: StyleTransferConfig, given: Given) -> Picture:
    """Return the content image; if `content` is a shape such as 4:3, a view of one grey pixel."""
    shape = SHAPE.fullmatch(config.content)
    if shape is None or "content" in given:
        return read_one("content", config.content, given)
    size = pastiche_size(config, (int(shape[2]), int(shape[1])), config.size)
    return Picture(torch.full((1, 3, 1, 1), 0.5).expand(1, 3, *size), name=config.content)


def check_room(config: StyleTransferConfig, shape: tuple[int, int], count: int) -> None:
    """Raise UserError if the pictures, and on a CPU the optimiser's, do not fit in memory.

    `shape` is the content's (h, w); `count` is the number of style images, detail included.
    """
    height, width = pastiche_size(config, shape, config.size)
    styles = sum(scale**2 for scale in style_scales(config, count))
    on_cpu = choose_device(config.device).type == "cpu"
    content = picture_bytes(config) if on_cpu else PIXEL_BYTES
    needed = height * width * (content + PIXEL_BYTES * styles)
    free = free_bytes(torch.device("cpu"))
    if needed > free:
        raise UserError(
            f"size={config.size} makes a picture of {width} x {height} pixels, which takes "
            f"at least {readable(needed)}, and {readable(free)} are free; choose less",
            "size",
        )


def check_side(picture: Picture, key: str | None = None) -> None:
    """Raise UserError if a side of a picture is shorter than SMALLEST_SIDE."""
    height, width = picture.size
    if min(height, width) < SMALLEST_SIDE:
        least = f"each side needs at least {SMALLEST_SIDE}"
        raise UserError(f"{picture.name} shows {width} x {height} pixels; {least}", key)


def style_image(path: str, size: int, least: int) -> Tensor:
    """Return a file's picture (1, 3, h, w) without transparent margins, its longer side `size`.

    UserError: the file cannot be read, or the shorter side would be below `least`.
    """
    picture = images.crop_transparent(images.read(path))
    check_side(picture)
    image = images.fill_transparent(images.resize_picture(picture, size))
    height, width = image.shape[2:]
    if min(height, width) < least:
        raise UserError(
            f"{path} comes down to {width} x {height} pixels, and the deepest layer needs {least}; "
            f"raise style_size={size}, or name shallower layers"
        )
    return image


def _read_styles(config: StyleTransferConfig, given: Given) -> list[Style]:
    """Return the style images with their regions, rotated, and last the image of `style_detail`.

    Transparent margins are cut off.
    """
    with about("style"):
        pictures = given.get("style") or list(map(images.read, files_of("style", config.style)))
    check_scales(config, len(pictures))
    regions = read_style_regions(config, given, len(pictures))
    angles = each(config.style_rotation)
    angles = angles * len(pictures) if len(angles) == 1 else angles
    styles = []
    for picture, parts, degrees in zip(pictures, regions, angles, strict=True):
        if parts is not None:
            _check_regions(parts, picture)
            parts = parts.cut(images.visible_box(picture), picture.size)
        image = images.crop_transparent(picture)
        if degrees:
            from styletransfer.pictures.rotate import rotated, rotated_regions

            image = rotated(image, degrees)
            parts = parts if parts is None else rotated_regions(parts, degrees)
        styles.append(Style(image, parts))
    if config.style_detail is not None or "style_detail" in given:
        detail = read_one("style_detail", config.style_detail, given)
        styles.append(Style(images.crop_transparent(detail)))
    return styles


def _check_regions(regions: Regions, picture: Picture) -> None:
    """Check the aspect ratio of a label picture, and log its regions in one line."""
    check_aspect(regions.size, picture.size, regions.source)
    uncovered = 100 * (1 - sum(regions.shares))
    rest = f"; {uncovered:.2g} % of the picture is in no region" if uncovered > 0.1 else ""
    logger.info("%s: %s%s", regions.source, regions.listed(), rest)


def _read_protected(config: StyleTransferConfig, given: Given, content: Picture) -> Tensor | None:
    """Return the mask (1, 1, H, W) in [0, 1] of the protected pixels, or None without one."""
    source = given.get("protect", config.protect)
    if source is None:
        return None
    mask = read_mask(source, "protect")
    name = f"protect={source}" if isinstance(source, str) else "protect"
    check_aspect((mask.shape[2], mask.shape[3]), content.size, name)
    return mask


def _read_start(config: StyleTransferConfig, given: Given) -> Tensor | None:
    if "init" not in given and config.init in STARTS:
        return None
    if "init" not in given and not os.path.exists(config.init):
        raise UserError(
            f"unknown init {config.init!r}; choose content, style, noise or a picture file"
        )
    return images.fill_transparent(read_one("init", config.init, given))


def _fitted_styles(
    config: StyleTransferConfig, styles: list[Style], content: Picture, enlarge: bool
) -> list[Style]:
    """Return the style images, resized, and recoloured for color=content_palette."""
    fitted = []
    for style, scale in zip(styles, style_scales(config, len(styles)), strict=True):
        picture = _fitted(style.picture, max(1, round(scale * config.size)), enlarge)
        if config.color == "content_palette":
            picture = recolored(picture, content, config.color_strength)
        fitted.append(replace(style, picture=picture))
    return fitted


def _fitted(picture: Picture, side: int, enlarge: bool) -> Picture:
    return images.resize_picture(picture, side if enlarge else min(side, max(picture.size)))
