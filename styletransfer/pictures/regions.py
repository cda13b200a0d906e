"""Regions of pictures, read from label pictures: each region is painted in one flat colour."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from PIL import ImageColor
from torch import Tensor
from torch.nn.functional import max_pool2d

from styletransfer.errors import UserError
from styletransfer.pictures.convert import Source, as_picture, check_plain
from styletransfer.pictures.images import resize

Color = tuple[int, int, int]  # sRGB, 0 to 255 each

MAX_REGIONS = 12  # largest number of regions in a label picture
# Largest difference of a channel, in levels of 255, between two colours that count as the same: a
# region's colours in the content's and a style's label picture, a region's colour and the one that
# a setting names, or two colours in one picture.
SAME = 32
_MIN_SHARE = 1e-4  # smallest fraction of the visible pixels with exactly a region's colour
# In a label picture, at least the fraction _FLAT_SHARE of the visible pixels is within _FLAT levels
# (of 255) of a region's colour. Label pictures reach at least 0.7; photographs and paintings at
# most 0.4.
_FLAT, _FLAT_SHARE = 8, 0.6
# Largest difference between the channels of a pixel of a grey mask, in [0, 1]. JPEG compression
# causes less.
_GREY = 32 / 255


@dataclass(frozen=True)
class Regions:
    """`Regions` hold, for each pixel of a picture, the number of its region."""

    labels: Tensor  # (H, W) int64: the number of each pixel's region, or -1 for none
    colors: tuple[Color, ...]  # one colour for each region
    source: str = "the regions"  # for error messages: the file's path if the regions have a file

    @property
    def size(self) -> tuple[int, int]:
        """Height and width in pixels."""
        return self.labels.shape[0], self.labels.shape[1]

    @property
    def names(self) -> tuple[str, ...]:
        """One name for each region: its CSS name if its colour has one, otherwise "#rrggbb"."""
        codes = ["#{:02x}{:02x}{:02x}".format(*color) for color in self.colors]
        return tuple(_css_names().get(code, code) for code in codes)

    @property
    def shares(self) -> list[float]:
        """The fraction of the picture that each region covers; 1 in all if no pixel is left out."""
        counts = torch.bincount(self.labels.flatten() + 1, minlength=len(self.names) + 1)
        return [count / self.labels.numel() for count in counts[1:].tolist()]

    def weights(self, region: int, size: tuple[int, int]) -> Tensor:
        """Return the weights (1, 1, h, w) of a region, resized by averaging over areas.

        The weights of all regions sum to at most 1, and to 1 if every pixel is in a region.
        """
        return resize((self.labels == region)[None, None].float(), size, "bilinear")

    def find(self, text: str) -> int:
        """Return the number of the region whose colour is `text` (UserError: there is none).

        `text` is a CSS colour or six hexadecimal digits, optionally after "#" or "0x", within 32
        levels of the region's colour.
        """
        text = text.strip().lower()
        digits = text.removeprefix("#").removeprefix("0x")
        is_hex = len(digits) == 6 and set(digits) <= set("0123456789abcdef")
        try:
            red, green, blue = ImageColor.getrgb(f"#{digits}" if is_hex else text)[:3]
        except ValueError:
            pass
        else:
            region = _nearest((red, green, blue), self.colors)
            if _distance((red, green, blue), self.colors[region]) <= SAME:
                return region
        raise UserError(f"{self.source} has no region {text!r}; it has {self.listed()}")

    def listed(self) -> str:
        """Return the names and the areas they cover, such as "red (40 %) and blue (60 %)"."""
        *first, last = map(self.described, range(len(self.names)))
        return f"{', '.join(first)} and {last}" if first else last

    def described(self, region: int) -> str:
        """Return a region's name and how much of the picture it covers, such as "red (40 %)"."""
        share = 100.0 * self.shares[region]
        return f"{self.names[region]} ({share:{'.0f' if share >= 10.0 else '.2g'}} %)"


def read_regions(source: Source, name: str) -> Regions:
    """Return the regions of a label picture, which is a file or a picture in memory.

    Each colour that `_flat_colors` returns is a region. Pixels of other colours, as on antialiased
    edges, are in the region of the nearest colour. Pixels that are more than half transparent are
    in no region. `name` is the picture's name in messages if it is no file. (UserError: the picture
    cannot be read, has more than 12 flat colours or none, or looks like a photograph.)
    """
    picture = as_picture(source, name)
    rgb = (picture.rgb[0] * 255.0).round().to(torch.int16)
    visible = torch.ones(picture.size, dtype=torch.bool)
    if picture.alpha is not None:
        visible = picture.alpha[0, 0] >= 0.5
    if not visible.any():
        raise UserError(f"{picture.name} is transparent everywhere; paint each region in a colour")
    colors = _flat_colors(rgb, visible)
    if not 0 < len(colors) <= MAX_REGIONS:
        raise _not_labels(picture.name, f"shows {len(colors)} flat colours")
    differences = (rgb - rgb.new_tensor(color)[:, None, None] for color in colors)
    difference, labels = torch.stack([x.abs().amax(0) for x in differences]).min(0)
    flat = (difference[visible] <= _FLAT).float().mean()
    if flat < _FLAT_SHARE:
        between = int((1.0 - flat) * visible.sum())
        raise _not_labels(picture.name, f"has {between:,} pixels between its flat colours")
    return Regions(labels.where(visible, -1), tuple(colors), picture.name)


def _flat_colors(rgb: Tensor, visible: Tensor) -> list[Color]:
    """Return the colours that fill a square of 3 x 3 pixels somewhere, the most frequent first.

    Colours that are rare, or within SAME levels of a more frequent one, are left out. `rgb` is
    (3, H, W) from 0 to 255, and `visible` is (H, W) bool.
    """
    codes = rgb[0] * 65536.0 + rgb[1] * 256.0 + rgb[2]  # whole numbers that float32 holds exactly
    flat = max_pool2d(codes[None], 3, 1, 1)[0] == -max_pool2d(-codes[None], 3, 1, 1)[0]
    values, counts = torch.unique(codes[visible], return_counts=True)
    counts = counts.where(torch.isin(values, codes[visible & flat]), 0)
    colors: list[Color] = []
    for n in counts.argsort(stable=True).flip(0).tolist():
        code = int(values[n])
        color = (code >> 16, code >> 8 & 255, code & 255)
        if counts[n] < max(1, _MIN_SHARE * int(visible.sum())):
            break
        if all(_distance(color, other) > SAME for other in colors):
            colors.append(color)
    return colors


def _not_labels(name: str, problem: str) -> UserError:
    return UserError(
        f"{name} {problem}; is it a photograph? Paint each region in one of at most {MAX_REGIONS} "
        "flat colours and save it as PNG"
    )


def read_mask(source: Source, name: str) -> Tensor:
    """Return a mask (1, 1, H, W) in [0, 1]: the grey values of `source`, times its alpha if any.

    `source` is a grey picture, or an array or tensor (H, W) of bool, uint8 or floats in [0, 1].
    `name` is its name in messages if it is no file. (UserError: `source` has colours, is black
    everywhere or cannot be read.)
    """
    if isinstance(source, Tensor) and source.ndim == 2:
        check_plain(source, name)
        source = source.detach().cpu()
        source = (source.float() if source.is_floating_point() else source).numpy()
    if isinstance(source, np.ndarray) and source.dtype == np.bool_:
        source = source.astype(np.float32)
    picture = as_picture(source, name)
    if (picture.rgb.amax(1) - picture.rgb.amin(1)).max() > _GREY:
        raise UserError(f"{picture.name} is a colour picture; a mask is grey")
    mask = picture.rgb.mean(1, keepdim=True)
    if picture.alpha is not None:
        mask = mask * picture.alpha
    if mask.max() < 0.5 / 255.0:
        raise UserError(f"{picture.name} is an empty mask; paint white (255) what it is to cover")
    return mask


def check_aspect(size: tuple[int, int], picture: tuple[int, int], name: str) -> None:
    """Raise UserError if a mask or label picture differs from its picture in aspect ratio.

    Both sizes are (H, W). After the larger picture is scaled to the longer side of the other, sides
    may differ by 1 pixel or 0.5 %, whichever is more.
    """
    smaller, larger = sorted((size, picture), key=max)
    scale = max(smaller) / max(larger)
    for side, other in zip(smaller, larger, strict=True):
        if abs(other * scale - side) > max(1.0, 0.005 * side):
            raise UserError(
                f"{name} has {size[1]} x {size[0]} pixels and its picture {picture[1]} x "
                f"{picture[0]}: another aspect ratio; crop or extend it like the picture"
            )


def _distance(first: Color, second: Color) -> int:
    """Return the largest difference of two colours in a channel, in levels of 255."""
    return max(abs(a - b) for a, b in zip(first, second, strict=True))


def _nearest(color: Color, colors: Sequence[Color]) -> int:
    """Return the index in `colors` of the nearest colour."""
    return min(range(len(colors)), key=lambda index: _distance(color, colors[index]))


@cache
def _css_names() -> dict[str, str]:
    """Return "#rrggbb" -> CSS name; of two names, the later in the alphabet: cyan, not aqua."""
    # Pillow's colormap holds codes, or tuples for names that were passed to getrgb before.
    names = sorted(ImageColor.colormap)
    return {"#{:02x}{:02x}{:02x}".format(*ImageColor.getrgb(name)): name for name in names}


def pair_regions(content: Regions, styles: Sequence[Regions]) -> list[list[int | None]]:
    """Return, for each style image, the number of its region for each region of the content.

    Regions whose colours are within 32 levels belong together. None marks a region that the style
    lacks. (UserError: a content region is in no style.)
    """
    pairs = [[_partner(color, style) for color in content.colors] for style in styles]
    for region in range(len(content.names)):
        if all(partners[region] is None for partners in pairs):
            lacking = " and ".join(f"{style.source} has only {style.listed()}" for style in styles)
            raise UserError(
                f"{content.source} has the region {content.described(region)}, and {lacking}; "
                "give both the same regions"
            )
    return pairs


def _partner(color: Color, style: Regions) -> int | None:
    """Return the number of the region of `style` with about this colour, or None."""
    partner = _nearest(color, style.colors)
    return partner if _distance(color, style.colors[partner]) <= SAME else None


def assign(regions: Regions, region_styles: Mapping[str, int], styles: int) -> list[int]:
    """Return for each region the number, from 0, of the style in which it is painted.

    `region_styles` maps colours, as `Regions.find` takes them, to numbers of styles from 1 to
    `styles`. The mapping may be empty if there is one style. (UserError: `region_styles` does not
    give each region exactly one style.)
    """
    count = len(regions.names)
    if not region_styles and styles == 1:
        return [0] * count
    chosen: dict[int, int] = {}
    for text, style in region_styles.items():
        region = regions.find(text)
        if not 1 <= style <= styles:
            raise UserError(
                f"region_styles gives {text} the style {style}; styles are numbered from 1 to "
                f"{styles} in the order of style="
            )
        if region in chosen:
            raise UserError(f"region_styles names {regions.names[region]} twice; keep one of them")
        chosen[region] = style - 1
    if len(chosen) < count:
        # The example is quoted, because shells expand braces, and has "0x" for "#", because Hydra
        # allows no "#" in keys and reads a key such as 1e1000 as a number.
        keys = [name.replace("#", "0x") for name in regions.names]
        pairs = ",".join(f"{key}:{1 + region % styles}" for region, key in enumerate(keys))
        raise UserError(
            f"{regions.source} has the regions {regions.listed()}, and there are {styles} styles; "
            f"say which takes which, such as 'region_styles={{{pairs}}}'"
        )
    return [chosen[region] for region in range(count)]
