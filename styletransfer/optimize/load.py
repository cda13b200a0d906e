"""The pictures of a job, as files or in memory: read, checked, and resized to the pastiche."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from styletransfer.config import StyleTransferConfig, each
from styletransfer.errors import UserError
from styletransfer.objective.pictures import Pictures
from styletransfer.optimize.regions import check_scales, make_regions
from styletransfer.optimize.schedule import STARTS, style_scales
from styletransfer.pictures import images
from styletransfer.pictures.images import Picture

# Enlarging a picture of fewer pixels a side gives a blur: nothing to take content or style from.
SMALLEST_SIDE = 8
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
# Of a mask's aspect ratio over the content image's, beside a pixel's rounding.
ASPECT_TOLERANCE = 0.005
# What a folder of styles is searched for.
EXTENSIONS = (".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff", ".bmp", ".gif")

# Pictures in memory, by the key whose files they stand for.
Given = Mapping[str, Picture | Sequence[Picture]]


@dataclass(frozen=True)
class Loaded:
    """The pictures of a job.

    Attributes:
        pictures: content, styles and regions at the pastiche's size.
        names: of the content image and of each style image, for messages.
        start: (1, 3, h, w), the picture to begin with, or None for what `config.init` names.
        alpha: (1, 1, H, W), the content's transparency, or None.
    """

    pictures: Pictures
    names: list[str]
    start: Tensor | None
    alpha: Tensor | None


def load(config: StyleTransferConfig, given: Given | None = None) -> Loaded:
    """Read every picture that `config` names.

    A style's transparent margins are cut off, and its visible colours spread into what
    transparency is left, so that no invisible colour enters a statistic.

    Args:
        config: the files, and what is to be done with them.
        given: pictures in memory, by the keys whose files they stand for.

    Raises:
        UserError: a picture that cannot be read, is fully transparent or next to nothing; weights,
            scales or masks that do not fit.
    """
    given = given or {}
    content = _read("content", config.content, given)
    styles = load_styles(config, given)
    names = [picture.name for picture in styles]
    check_scales(config, len(styles) - (config.style_detail is not None))
    for picture in (content, *styles):
        check_side(picture)
    content = images.resize_picture(content, config.size)
    protected = _mask("protect", config.protect, given, content)
    factors = style_scales(config, len(styles))
    return Loaded(
        pictures=Pictures(
            content=images.fill_transparent(content),
            styles=tuple(
                images.fill_transparent(
                    images.resize_picture(style, max(1, round(factor * config.size)))
                )
                for style, factor in zip(styles, factors, strict=True)
            ),
            regions=make_regions(config, names, protected),
            protected=protected,
        ),
        names=[content.name, *names],
        start=_start(config, given),
        alpha=content.alpha,
    )


def load_styles(config: StyleTransferConfig, given: Given) -> list[Picture]:
    """Return the style images, that of `style_detail` last, without transparent margins.

    Raises:
        UserError: one cannot be read, or there is none.
    """
    styles = _read_all("style", config.style, given)
    if config.style_detail is not None or "style_detail" in given:
        styles.append(_read("style_detail", config.style_detail, given))
    return [images.crop_transparent(style) for style in styles]


def picture_files(config: StyleTransferConfig) -> list[tuple[str, str]]:
    """Return the key and the path of every picture that `config` names; folders by their files."""
    found = []
    for key in PICTURE_KEYS:
        for name in each(getattr(config, key)):
            files = in_folder(name) if os.path.isdir(name) else [name]
            found += [(key, path) for path in files]
    return found


def in_folder(name: str) -> list[str]:
    """Return the paths of the pictures in a folder, in the order of their names."""
    files = sorted(path for path in Path(name).iterdir() if path.suffix.lower() in EXTENSIONS)
    return list(map(str, files))


def files_of(key: str, value: str | Sequence[str] | None) -> list[str]:
    """Return the picture files that a key names: one, several, or all of a folder.

    Raises:
        UserError: there is none.
    """
    files: list[str] = []
    for name in each(value):
        found = in_folder(name) if os.path.isdir(name) else [name]
        if not found:
            raise UserError(f"{key}={name} holds no picture; name a folder of pictures, or a file")
        files += found
    if not files:
        raise UserError(f"{key} names no picture; name at least one")
    return files


def _read_all(key: str, value: str | Sequence[str], given: Given) -> list[Picture]:
    """Read one picture, several, or all of a folder.

    Raises:
        UserError: one cannot be read, or there is none.
    """
    if key in given:
        there = given[key]
        return [there] if isinstance(there, Picture) else list(there)
    return [images.read(path) for path in files_of(key, value)]


def _read(key: str, path: str | None, given: Given) -> Picture:
    if key in given:
        there = given[key]
        assert isinstance(there, Picture)
        return there
    assert path is not None
    return images.read(path)


def check_side(picture: Picture) -> None:
    """Check that a picture is no smaller than SMALLEST_SIDE.

    Raises:
        UserError: it is.
    """
    height, width = picture.size
    if min(height, width) < SMALLEST_SIDE:
        raise UserError(
            f"{picture.name} shows {width} x {height} pixels; each side needs at least "
            f"{SMALLEST_SIDE}"
        )


def _start(config: StyleTransferConfig, given: Given) -> Tensor | None:
    if "init" not in given and config.init in STARTS:
        return None
    if "init" not in given and not os.path.exists(config.init):
        raise UserError(
            f"unknown init {config.init!r}; choose content, style, noise or a picture file"
        )
    return images.fill_transparent(_read("init", config.init, given))


def _mask(key: str, path: str | None, given: Given, content: Picture) -> Tensor | None:
    """Return a grey mask (1, 1, H, W) in [0, 1] at the size of the content image.

    Raises:
        UserError: it cannot be read, or has another aspect ratio.
    """
    if path is None and key not in given:
        return None
    mask = _read(key, path, given)
    (height, width), (high, wide) = content.size, mask.size
    if abs(width / height / (wide / high) - 1) > ASPECT_TOLERANCE + 1 / min(high, wide):
        raise UserError(
            f"{key}: {mask.name} has {wide} x {high} pixels, another aspect ratio than the content "
            f"image's {width} x {height}"
        )
    return images.resize(mask.rgb.mean(1, keepdim=True), content.size)
