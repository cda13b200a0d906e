"""Regions of pictures: their colours and names, and the style in which each is painted."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

import torch
from PIL import ImageColor
from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.pictures.images import resize

Color = tuple[int, int, int]  # sRGB, 0 to 255 each

# Two colours count as the same if no channel differs by more than SAME levels of 255. This holds
# for two colours in a label picture, for a region of the content and a region of a style, and for a
# region and the colour that a setting names.
SAME = 32


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
        """The fraction of the pixels in each region; the sum is 1 if all pixels are in regions."""
        counts = torch.bincount(self.labels.flatten() + 1, minlength=len(self.names) + 1)
        return [count / self.labels.numel() for count in counts[1:].tolist()]

    def weights(self, region: int, size: tuple[int, int]) -> Tensor:
        """Return a region's weight at each pixel, (1, 1, h, w), resized to `size` (h, w).

        The weights of all regions sum to at most 1, and to 1 if every pixel is in a region.
        """
        return resize((self.labels == region)[None, None].float(), size, "bilinear")

    def find(self, text: str) -> int:
        """Return the number of the region whose colour is `text` (UserError if there is none).

        `text` is a CSS colour or six hexadecimal digits, optionally after "#" or "0x", within 32
        levels of the region's colour.
        """
        text = text.strip().lower()
        digits = text.removeprefix("#").removeprefix("0x")
        is_hex = len(digits) == 6 and set(digits) <= set("0123456789abcdef")
        with suppress(ValueError):  # raised by getrgb if it does not know the colour
            red, green, blue = ImageColor.getrgb(f"#{digits}" if is_hex else text)[:3]
            if (region := _like((red, green, blue), self.colors)) is not None:
                return region
        raise UserError(f"{self.source} has no region {text!r}; it has {self.listed()}")

    def listed(self) -> str:
        """Return a text that lists all regions, such as "red (40 %) and blue (60 %)"."""
        *first, last = map(self.described, range(len(self.names)))
        return f"{', '.join(first)} and {last}" if first else last

    def described(self, region: int) -> str:
        """Return a region's name and its percentage of the picture's pixels: "red (40 %)"."""
        share = 100.0 * self.shares[region]
        return f"{self.names[region]} ({share:{'.0f' if share >= 10.0 else '.2g'}} %)"


def distance(first: Color, second: Color) -> int:
    """Return the largest difference of two colours in a channel, in levels of 255."""
    return max(abs(a - b) for a, b in zip(first, second, strict=True))


def _like(color: Color, colors: Sequence[Color]) -> int | None:
    """Return the index of the nearest colour, or None if it is not within SAME levels."""
    nearest = min(range(len(colors)), key=lambda index: distance(color, colors[index]))
    return nearest if distance(color, colors[nearest]) <= SAME else None


@cache
def _css_names() -> dict[str, str]:
    """Return "#rrggbb" -> CSS name; of two names, the alphabetically later: cyan, not aqua."""
    # Do not use the values of Pillow's colormap: `getrgb` overwrites some of them with tuples.
    names = sorted(ImageColor.colormap)
    return {"#{:02x}{:02x}{:02x}".format(*ImageColor.getrgb(name)): name for name in names}


def pair_regions(content: Regions, styles: Sequence[Regions]) -> list[list[int | None]]:
    """Return, for each style, the number of its matching region for each content region.

    Regions whose colours are within 32 levels belong together. None marks a region that the style
    lacks. (UserError if a content region is in no style.)
    """
    pairs = [[_like(color, style.colors) for color in content.colors] for style in styles]
    for region in range(len(content.names)):
        if all(partners[region] is None for partners in pairs):
            lacking = " and ".join(f"{style.source} has only {style.listed()}" for style in styles)
            raise UserError(
                f"{content.source} has the region {content.described(region)}, and {lacking}; "
                "give both the same regions"
            )
    return pairs


def assign(regions: Regions, region_styles: Mapping[str, int], styles: int) -> list[int]:
    """Return for each region the number, from 0, of the style in which it is painted.

    `region_styles` maps colours, as `Regions.find` takes them, to numbers of styles from 1 to
    `styles`. The mapping may be empty if there is one style. (UserError if `region_styles` does not
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
