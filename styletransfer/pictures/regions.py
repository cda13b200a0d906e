"""The regions of a picture: their pixels, their names, and the pairs of content and style."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Self

import torch
from PIL import ImageColor
from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.pictures.images import resize

Color = tuple[int, int, int]  # sRGB, 0 to 255 each

# Largest difference of a channel, in levels of 255, between two colours that count as the same: in
# a content's and a style's label pictures, or in one JPEG, which changes colours.
SAME = 32
# Largest differences of a channel, in levels of 255. _NAMED: between a painted colour and the CSS
# colour whose name it gets. _MEANT: between a colour that a user types and the painted colour.
_NAMED, _MEANT = 16, 64


@dataclass(frozen=True)
class Regions:
    """The regions of a picture; no pixel's weights sum to more than 1."""

    # Unique names: CSS names or "#rrggbb" of painted colours, numbers, or the names of masks.
    names: tuple[str, ...]
    # (R, 1, H, W): for labels bool, with each pixel in at most one region; for masks float in
    # [0, 1].
    layers: Tensor
    colors: tuple[Color, ...] = ()  # one per region; empty for numbers and masks
    snapped: int = 0  # pixels between painted colours, which were assigned to the nearest one
    source: str = "the regions"  # for error messages: the path, if they were read from a file

    @property
    def size(self) -> tuple[int, int]:
        """Height and width in pixels."""
        return self.layers.shape[2], self.layers.shape[3]

    @property
    def soft(self) -> bool:
        """True for grey masks, which are paired by order; False for labels, paired by name."""
        return self.layers.is_floating_point()

    @cached_property
    def shares(self) -> list[float]:
        """Each region's share of the picture; they sum to 1 where no pixel is left out."""
        return [float(x.sum(dtype=torch.float64)) / x.numel() for x in self.layers]

    @property
    def uncovered(self) -> float:
        """The share of the picture that is in no region."""
        return max(0.0, 1.0 - sum(self.shares))

    def weights(self, region: int, size: tuple[int, int]) -> Tensor:
        """Return the weights (1, 1, h, w) of a region, resized by averaging over areas.

        The weights of all regions still sum to at most 1, and to 1 where every pixel has a region.
        """
        return resize(self.layers[region][None].float(), size, "bilinear")

    def cut(self, box: tuple[slice, slice], size: tuple[int, int]) -> Self:
        """Return what lies in a box (rows, columns) of a picture of this height and width."""
        rows, columns = (
            slice(side.start * own // whole, -(-side.stop * own // whole))
            for side, own, whole in zip(box, self.size, size, strict=True)
        )
        return self.changed(self.layers[..., rows, columns], "the transparent margins are cut off")

    def changed(self, layers: Tensor, how: str) -> Self:
        """Return regions with new `layers` (UserError: one is empty; the message says `how`)."""
        for name, layer in zip(self.names, layers, strict=True):
            if not layer.any():
                raise UserError(
                    f"{self.source}: nothing is left of the region {name} once {how}; let it reach "
                    "further to the middle"
                )
        return replace(self, layers=layers)

    def find(self, text: str) -> int:
        """Return the number, from 0, of the region of a name or (UserError: none) a colour.

        Of colours, as `parse_color` knows them, the nearest painted within 64 levels is meant.
        """
        named = [name.lower() for name in self.names]
        if text.strip().lower() in named:
            return named.index(text.strip().lower())
        color = parse_color(text)
        if color is not None and self.colors:
            region = nearest(color, self.colors)
            if distance(color, self.colors[region]) <= _MEANT:
                return region
        raise UserError(f"{self.source} has no region {text!r}; it has {self.listed()}")

    def listed(self) -> str:
        """Return the names with their shares, such as "red (40 %) and blue (60 %)"."""
        *first, last = map(self.described, range(len(self.names)))
        return f"{', '.join(first)} and {last}" if first else last

    def described(self, region: int) -> str:
        """Return a region's name and its share of the picture, such as "red (40 %)"."""
        share = 100.0 * self.shares[region]
        return f"{self.names[region]} ({share:{'.0f' if share >= 10.0 else '.2g'}} %)"


def check_aspect(size: tuple[int, int], picture: tuple[int, int], name: str) -> None:
    """Refuse a mask or label picture of another aspect ratio than its picture, both (H, W).

    Where the larger is scaled to the other's longer side, sides may differ by a pixel or 0.5 %.
    """
    smaller, larger = sorted((size, picture), key=max)
    scale = max(smaller) / max(larger)
    for side, other in zip(smaller, larger, strict=True):
        if abs(other * scale - side) > max(1.0, 0.005 * side):
            raise UserError(
                f"{name} has {size[1]} x {size[0]} pixels and its picture {picture[1]} x "
                f"{picture[0]}: another aspect ratio; crop or extend it like the picture"
            )


def distance(first: Color, second: Color) -> int:
    """Return the largest difference of a channel, in levels of 255."""
    return max(abs(a - b) for a, b in zip(first, second, strict=True))


def nearest(color: Color, colors: tuple[Color, ...]) -> int:
    """Return the place in `colors` of the one that is nearest."""
    return min(range(len(colors)), key=lambda place: distance(color, colors[place]))


def color_names(colors: list[Color]) -> tuple[str, ...]:
    """Return CSS names of colours within 16 levels, or "#rrggbb" where there is none of its own."""
    names = []
    for color in colors:
        name, css = min(_css_colors().items(), key=lambda item: distance(item[1], color))
        names.append(name if distance(css, color) <= _NAMED else "")
    return tuple(
        name if name and names.count(name) == 1 else "#{:02x}{:02x}{:02x}".format(*color)
        for color, name in zip(colors, names, strict=True)
    )


def parse_color(text: str) -> Color | None:
    """Return what a person means by a colour, or None.

    It may be a CSS name or function ("red", "hsl(0, 100%, 50%)"), six hexadecimal digits behind
    "#", "0x" or nothing, or three numbers ("255, 0, 0", with or without brackets).
    """
    text = text.strip().lower()
    if re.fullmatch(r"(#|0x)?[0-9a-f]{6}", text):
        text = "#" + text[-6:]
    elif re.fullmatch(r"[(\[]?\s*\d+(\s*,\s*\d+){2}\s*[)\]]?", text):
        text = f"rgb({text.strip('()[] ')})"
    try:
        red, green, blue = ImageColor.getrgb(text)[:3]
    except ValueError:
        return None
    return (red, green, blue) if max(red, green, blue) <= 255 else None


@cache
def _css_colors() -> dict[str, Color]:
    """Return CSS names with their colours; of two names for one, as aqua and cyan, the later."""
    names = {ImageColor.getrgb(name): name for name in sorted(ImageColor.colormap)}
    return {name: (color[0], color[1], color[2]) for color, name in names.items()}


def pair_regions(content: Regions, styles: Sequence[Regions]) -> list[list[int | None]]:
    """Return for each style, and each region of the content, the number of its region there.

    Labels pair by colour (within 32 levels of 255) or number, masks by their order. None stands
    where a style does not hold the region, and another one does (UserError: any other misfit).
    """
    regions = range(len(content.names))
    pairs = [[_partner(content, region, style) for region in regions] for style in styles]
    for region in regions:
        if all(partners[region] is None for partners in pairs):
            raise _unpaired(content, region, styles)
    for style, partners in zip(styles, pairs, strict=True):
        for region in range(len(style.names)):
            if region not in partners:
                raise _unpaired(style, region, [content])
    return pairs


def assign(regions: Regions, region_styles: Mapping[str, int], styles: int) -> list[int]:
    """Return for each region of the content the number, from 0, of the style it is painted in.

    `region_styles` maps regions, as `Regions.find` knows them, to numbers of styles from 1 to
    `styles` (UserError: it does not fit, or is needed). Without it a single style goes everywhere,
    and the i-th mask takes the i-th style.
    """
    count = len(regions.names)
    if not region_styles and styles == 1:
        return [0] * count
    if not region_styles and regions.soft and count == styles:
        return list(range(count))
    # The example is text for a shell: in quotes, because shells expand braces. "#" becomes "0x",
    # because Hydra allows no "#" in keys, and would read a key such as 1e1000 as a number.
    keys = [name.replace("#", "0x") for name in regions.names]
    pairs = ",".join(f"{key}:{1 + region % styles}" for region, key in enumerate(keys))
    example = f"'region_styles={{{pairs}}}'"
    if not region_styles:
        raise UserError(
            f"{regions.source} has the regions {regions.listed()}, and there are {styles} styles; "
            f"say which takes which, such as {example}"
        )
    chosen: dict[int, int] = {}
    for text, style in region_styles.items():
        region = regions.find(text)
        if region in chosen:
            raise UserError(f"region_styles names {regions.names[region]} twice; keep one of them")
        if not 1 <= style <= styles:
            raise UserError(
                f"region_styles gives {text} the style {style}; styles are numbered from 1 to "
                f"{styles} in the order of style="
            )
        chosen[region] = style - 1
    for region in range(count):
        if region not in chosen:
            raise UserError(
                f"region_styles leaves out {regions.described(region)} of {regions.source}; "
                f"say all, such as {example}"
            )
    return [chosen[region] for region in range(count)]


def _partner(content: Regions, region: int, style: Regions) -> int | None:
    if content.soft != style.soft:
        raise UserError(
            f"{content.source} and {style.source} are masks and labels; give both as label "
            "pictures, or both as lists or folders of masks"
        )
    if content.soft:
        if len(content.names) != len(style.names):
            raise UserError(
                f"{content.source} has {len(content.names)} masks and {style.source} has "
                f"{len(style.names)}; they pair by their order, so give as many"
            )
        return region
    if content.colors and style.colors:
        partner = nearest(content.colors[region], style.colors)
        back = nearest(style.colors[partner], content.colors)
        near = distance(content.colors[region], style.colors[partner]) <= SAME
        return partner if near and back == region else None
    name = content.names[region]
    return style.names.index(name) if name in style.names else None


def _unpaired(regions: Regions, region: int, others: Sequence[Regions]) -> UserError:
    lacking = " and ".join(f"{other.source} has only {other.listed()}" for other in others)
    return UserError(
        f"{regions.source} has the region {regions.described(region)}, and {lacking}; "
        "give both the same regions"
    )
