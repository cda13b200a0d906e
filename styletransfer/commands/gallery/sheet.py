"""The contact sheet: all pictures as one, to be printed or passed on."""

import math
import textwrap
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import matplotlib
from PIL import Image, ImageDraw, ImageFont

from styletransfer.commands.gallery.cards import THUMBNAIL, Card
from styletransfer.commands.gallery.table import Section

# In pixels: between cells, of the column of row headings, from one line of text to the next, and
# from one letter to the next.
GAP, HEADINGS, LINE, LETTER = 12, 208, 18, 8
PAPER, INK, EMPTY = "#ffffff", "#1f2937", "#dfe3e8"
ACROSS = 6  # pictures side by side where there is no table, at most
CAPTION = 3  # lines of text under a picture, at most


def draw_sheet(title: str, sections: Sequence[Section], cards: Sequence[Card]) -> Image.Image:
    """Return the sheet, 8-bit sRGB: the page's tables and lists with what was varied and losses."""
    pictures = [card.preview.thumbnail for card in cards if card.preview is not None]
    width = max((picture.width for picture in pictures), default=THUMBNAIL)
    height = max((picture.height for picture in pictures), default=THUMBNAIL)
    cell = (max(width, THUMBNAIL // 2), height)
    bands = [_title(title)]
    for section in sections:
        if section.heading:
            bands.append(_title(section.heading))
        bands += _table(section, cards, cell) if section.rows else _list(section, cards, cell)
    return _stacked(bands, frame=GAP)


def _table(section: Section, cards: Sequence[Card], cell: tuple[int, int]) -> list[Image.Image]:
    """Return the rows of a table, headings first."""
    corner = _text(f"{section.row_key} by {section.column_key}", HEADINGS)
    rows = [_row([corner, *(_text(value, cell[0]) for value in section.columns)])]
    for value, numbers in section.rows:
        blocks = [_block(None if n is None else cards[n], "", cell) for n in numbers]
        rows.append(_row([_text(value, HEADINGS), *blocks]))
    return rows


def _list(section: Section, cards: Sequence[Card], cell: tuple[int, int]) -> list[Image.Image]:
    """Return rows of pictures with what was varied."""
    blocks = [_block(cards[number], cards[number].label, cell) for number in section.loose]
    across = min(ACROSS, math.ceil(math.sqrt(1.5 * len(blocks)))) or 1
    return [_row(blocks[first : first + across]) for first in range(0, len(blocks), across)]


def _block(card: Card | None, label: str, cell: tuple[int, int]) -> Image.Image:
    """Return a picture with its caption, or an empty place."""
    picture = Image.new("RGB", cell, PAPER if card is None else EMPTY)
    words = label
    if card is not None:
        total = card.losses.get("total")
        words = " · ".join(filter(None, (label, "" if total is None else f"loss {total:.4g}")))
        if card.preview is None:
            ImageDraw.Draw(picture).text((GAP, GAP), "no picture", INK, _font())
        else:
            picture = card.preview.thumbnail
    text = _text(words, cell[0])
    block = Image.new("RGB", (cell[0], cell[1] + text.height), PAPER)
    block.paste(picture, (0, 0))
    block.paste(text, (0, picture.height))
    return block


def _row(blocks: Sequence[Image.Image]) -> Image.Image:
    """Put blocks side by side."""
    turned = [block.transpose(Image.Transpose.TRANSPOSE) for block in blocks]
    return _stacked(turned).transpose(Image.Transpose.TRANSPOSE)


def _stacked(bands: Sequence[Image.Image], frame: int = 0) -> Image.Image:
    """Put bands below each other."""
    width = max(band.width for band in bands) + 2 * frame
    height = sum(band.height + GAP for band in bands) - GAP + 2 * frame
    stacked = Image.new("RGB", (width, height), PAPER)
    top = frame
    for band in bands:
        stacked.paste(band, (frame, top))
        top += band.height + GAP
    return stacked


def _title(text: str) -> Image.Image:
    """Return a heading, no wider than its words."""
    return _text(text, min(LETTER * len(text), 4 * THUMBNAIL))


def _text(text: str, width: int) -> Image.Image:
    """Return words on as many lines as they need, the last one cut short if there are too many."""
    lines = textwrap.wrap(text, width // LETTER, max_lines=CAPTION, placeholder="…")
    image = Image.new("RGB", (width, LINE * max(len(lines), 1)), PAPER)
    draw = ImageDraw.Draw(image)
    for number, line in enumerate(lines):
        draw.text((0, number * LINE), line, INK, _font())
    return image


@cache
def _font() -> ImageFont.FreeTypeFont:
    """Return the font that comes with matplotlib: it knows more letters than Pillow's own."""
    path = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSansMono.ttf"
    return ImageFont.truetype(str(path), 13)
