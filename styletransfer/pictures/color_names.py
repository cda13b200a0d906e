"""Colours by name: what a person calls them, and what they mean by it."""

import re
from functools import cache

from PIL import ImageColor

Color = tuple[int, int, int]
"""sRGB, 0 to 255 each."""

# A name is used for colours this near to its own: JPEG moves flat colours by a few levels.
_NEAR = 16


def distance(first: Color, second: Color) -> int:
    """Return the largest difference of a channel, in levels of 255."""
    return max(abs(a - b) for a, b in zip(first, second, strict=True))


def color_name(color: Color) -> str:
    """Return the CSS name of a colour within 16 levels, such as "red", or else "#rrggbb"."""
    name, nearest = min(_css_colors().items(), key=lambda item: distance(item[1], color))
    return name if distance(nearest, color) <= _NEAR else hexadecimal(color)


def hexadecimal(color: Color) -> str:
    """Return a colour as "#rrggbb"."""
    return "#{:02x}{:02x}{:02x}".format(*color)


def parse_color(text: str) -> Color | None:
    """Return what a person means by a colour, or None.

    Args:
        text: a CSS name or function ("red", "rgb(255, 0, 0)", "hsl(0, 100%, 50%)"), six hexadecimal
            digits behind "#", "0x" or nothing, or three numbers ("255, 0, 0", with or without
            brackets).
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
