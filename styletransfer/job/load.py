"""Reads, checks, rotates and resizes the pictures that the settings of a job name."""

import logging
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor

from styletransfer.errors import UserError, about
from styletransfer.job import STARTS, pastiche_size, style_scales
from styletransfer.job.memory import check_room
from styletransfer.objective.inputs import Inputs, Region, StylePart
from styletransfer.pictures import files_at, images
from styletransfer.pictures.images import Picture
from styletransfer.settings import StyleTransferConfig, each
from styletransfer.settings.schemas import keys, named_files

logger = logging.getLogger(__name__)

# Settings that name pictures; init may also be a word such as "noise".
PICTURE_KEYS = (
    *("content", "style", "style_detail", "content_regions", "style_regions"),
    *("protect", "init"),
)

# Settings that divide the picture. If none is set, one blend of styles paints all of it.
DIVIDING = ("content_regions", "style_regions", "region_styles", "protect")
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


def read_one(key: str, path: str | None, given: Mapping[str, Any]) -> Picture:
    """Return the picture of a setting, in memory or in a file (UserError: it cannot be read)."""
    with about(key):
        return given[key] if key in given else images.read(path or "")


def files_of(key: str, value: str | Sequence[str] | None) -> list[str]:
    """Return the files that a setting names, and those in its folders (UserError: no picture)."""
    files: list[str] = []
    for name in each(value):
        named = files_at(name)
        if not named:
            raise UserError(f"{key}={name} holds no picture; name a folder of pictures, or a file")
        files += named
    if not files:
        raise UserError(f"{key} names no picture; name at least one", key)
    return files


def load(
    config: StyleTransferConfig, given: Mapping[str, Any] | None = None, *, enlarge: bool = True
) -> Inputs:
    """Read every picture that `config` names.

    A style's transparent margins are cut off, and its visible colours spread into the remaining
    transparent pixels, so that no invisible colour enters a statistic.

    `given` maps settings to pictures in memory, which replace their files: a Picture, for style a
    list of Pictures, for regions and masks what `read_regions` and `read_mask` take. Without
    `enlarge`, as for a dry run, pictures smaller than the pastiche keep their size. (UserError: a
    picture cannot be read, is fully transparent or too small; or weights, scales, regions or masks
    do not fit.)
    """
    given = given or {}
    photo = _read_content(config, given)
    with about("style"):
        paintings = given.get("style") or list(map(images.read, files_of("style", config.style)))
    styles = _read_styles(config, given, paintings)
    for picture, key in ((photo, "content"), *((style, "style") for style in styles)):
        check_side(picture, key)
    if enlarge:
        check_room(config, photo.size, len(styles))
        photo = replace(photo, rgb=photo.rgb.contiguous())
    if max(photo.size) < config.size:
        height, width = photo.size
        logger.info("%s: enlarged from %d x %d pixels", photo.name, width, height)
    content = _fitted(photo, config.size, enlarge)
    filled = images.fill_transparent(content)  # raises UserError if no pixel is visible
    styles = _fitted_styles(config, styles, content, enlarge)
    names = (content.name, *(style.name for style in styles))
    with about("style_weights"):
        parts = style_parts(config, names[1:])
    regions: tuple[Region, ...] = (Region(sources=parts),)
    protected = None
    if any(key in given or getattr(config, key) for key in DIVIDING):
        from styletransfer.job.regions import divided

        sizes = [picture.size for picture in (content, *styles)]
        regions, protected = divided(config, given, [photo, *paintings], sizes, parts)
    return Inputs(
        content=filled,
        styles=tuple(map(images.fill_transparent, styles)),
        regions=regions,
        protected=protected,
        start=_read_start(config, given),
        alpha=content.alpha,
        names=names,
    )


def _read_content(config: StyleTransferConfig, given: Mapping[str, Any]) -> Picture:
    """Return the content image; for a shape such as 4:3, a grey picture (a view of one pixel)."""
    shape = SHAPE.fullmatch(config.content)
    if shape is None or "content" in given:
        return read_one("content", config.content, given)
    size = pastiche_size(config, (int(shape[2]), int(shape[1])), config.size)
    return Picture(torch.full((1, 3, 1, 1), 0.5).expand(1, 3, *size), name=config.content)


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


def _read_styles(
    config: StyleTransferConfig, given: Mapping[str, Any], paintings: Sequence[Picture]
) -> list[Picture]:
    """Return the style images, rotated, and last the image of `style_detail`.

    Transparent margins are cut off.
    """
    styles = []
    for picture, degrees in zip(paintings, angles(config, len(paintings)), strict=True):
        style = images.crop_transparent(picture)
        if degrees:
            from styletransfer.pictures.rotate import rotated

            style = rotated(style, degrees)
        styles.append(style)
    if config.style_detail is not None or "style_detail" in given:
        detail = read_one("style_detail", config.style_detail, given)
        styles.append(images.crop_transparent(detail))
    return styles


def angles(config: StyleTransferConfig, styles: int) -> list[float]:
    """Return the angle in degrees by which each style is turned (UserError: too few numbers)."""
    for key in ("style_scale", "style_rotation"):
        if (count := len(each(getattr(config, key)))) not in (1, styles):
            raise UserError(
                f"{key} holds {count} numbers but there are {styles} styles; give one number, or "
                "one for each",
                key,
            )
    turned = each(config.style_rotation)
    return turned * styles if len(turned) == 1 else turned


def style_parts(config: StyleTransferConfig, styles: Sequence[str]) -> tuple[StylePart, ...]:
    """Return the style images of weight above 0, then that of `style_detail` at its own layers."""
    if config.style_detail is None:
        return tuple(_weighted(config, styles, layers=None))
    objective, detail = config.objective, set(config.objective.detail_layers)
    matched = objective.match_layers if objective.match_weight else []
    layers = list(dict.fromkeys([*objective.style_layers, *matched]))
    if not detail & set(layers):
        raise UserError(
            "style_detail has no effect: objective.detail_layers names none of the layers at which "
            f"styles act, which are {', '.join(layers)}",
            "style_detail",
        )
    others = [layer for layer in layers if layer not in detail]
    if not others:
        raise UserError(
            "style has no effect: objective.detail_layers names all of the layers at which styles "
            f"act, which are {', '.join(layers)}; leave some to style",
            "objective.detail_layers",
        )
    blend = _weighted(config, styles[:-1], others)
    return (*blend, StylePart(style=len(styles) - 1, layers=sorted(detail)))


def _weighted(
    config: StyleTransferConfig, styles: Sequence[str], layers: list[str] | None
) -> list[StylePart]:
    """Return the style images of weight above 0; their normalised weights sum to 1."""
    weights = config.style_weights or [1.0] * len(styles)
    if len(weights) != len(styles):
        raise UserError(
            f"style_weights holds {len(weights)} numbers but style names {len(styles)} "
            f"({', '.join(styles)}); give one for each"
        )
    if not any(weights):
        raise UserError("style_weights are all 0; give at least one style more than 0")
    largest = max(weights)  # a sum of the weights themselves might overflow
    total = sum(weight / largest for weight in weights)
    shares = [weight / largest / total for weight in weights]
    return [StylePart(n, share, layers=layers) for n, share in enumerate(shares) if share > 0]


def _read_start(config: StyleTransferConfig, given: Mapping[str, Any]) -> Tensor | None:
    if "init" not in given and config.init in STARTS:
        return None
    if "init" not in given and not os.path.exists(config.init):
        raise UserError(
            f"unknown init {config.init!r}; choose content, style, noise or a picture file"
        )
    return images.fill_transparent(read_one("init", config.init, given))


def _fitted_styles(
    config: StyleTransferConfig, styles: Sequence[Picture], content: Picture, enlarge: bool
) -> list[Picture]:
    """Return the style images, resized, and recoloured for color=content_palette."""
    sides = [max(1, round(scale * config.size)) for scale in style_scales(config, len(styles))]
    fitted = [_fitted(*pair, enlarge) for pair in zip(styles, sides, strict=True)]
    if config.color == "content_palette":
        from styletransfer.pictures.color import recolored

        fitted = [recolored(style, content, config.color_strength) for style in fitted]
    return fitted


def _fitted(picture: Picture, side: int, enlarge: bool) -> Picture:
    return images.resize_picture(picture, side if enlarge else min(side, max(picture.size)))
