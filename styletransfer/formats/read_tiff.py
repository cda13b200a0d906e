"""Reads TIFF files by tifffile: Pillow would drop the lower byte of 16-bit samples."""

import logging
import math
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import tifffile
from numpy.typing import NDArray
from PIL import Image
from tifffile import COMPRESSION, EXTRASAMPLE, PHOTOMETRIC

from styletransfer.errors import UserError
from styletransfer.formats.color_spaces import ColorSpace
from styletransfer.formats.folders import imagecodecs
from styletransfer.formats.from_pillow import load_image
from styletransfer.formats.stated_colors import by_exif, told
from styletransfer.formats.stored import ORIENTATION, RAW, Stored, check_size

logger = logging.getLogger(__name__)

# TIFF colour model -> samples per pixel, without alpha and other extra samples.
_CHANNELS = {
    PHOTOMETRIC.MINISWHITE: 1,
    PHOTOMETRIC.MINISBLACK: 1,
    PHOTOMETRIC.PALETTE: 1,
    PHOTOMETRIC.RGB: 3,
    PHOTOMETRIC.SEPARATED: 4,
}
_XMP = 700  # number of the tag of an XMP packet
_RAW = (PHOTOMETRIC.CFA, PHOTOMETRIC.LINEAR_RAW)  # colour models of RAW files
_RAW_COMPRESSIONS = (32767, 34713, 65535)  # compressions in RAW files: Sony, Nikon, Pentax
# TIFF compressions whose decoders return no more bytes than the TIFF tags state.
_BOUNDED = {COMPRESSION[x] for x in ("NONE", "LZW", "ADOBE_DEFLATE", "DEFLATE", "PACKBITS")}
# Types of samples that tifffile decodes here. Pillow decodes other samples of at most 8 bits.
_DTYPES = (np.uint8, np.uint16, np.float16, np.float32, np.float64)
_MAX_VERSIONS = 32  # largest number of pages, and of SubIFDs (pages in a page), that are examined
# Most samples per pixel that are decoded here: four inks, alpha, and three that are ignored.
_MAX_SAMPLES = 8


def load_tiff(path: Path, file: BinaryIO) -> Stored:
    """Return the stored samples of an open TIFF file (UserError if its layout is unknown).

    The picture is the first page, unless that page has a larger one in its SubIFDs, or is marked as
    a thumbnail of a larger page. For floats, 0 is black and 1 is white; other values are clipped.
    """
    with _opened(file) as tiff:
        first = tiff.pages[0]
        pages = _versions(path, tiff, first)
        number, page = max(pages, key=lambda pair: pair[1].imagewidth * pair[1].imagelength)
        _check_raw(path, file, page)
        check_size(path, page.imagewidth, page.imagelength)
        if _is_decoded(page):
            stored = _load_page(path, page, first)
        else:
            stored = _load_by_pillow(path, file, page, number)
        with suppress(Exception):  # the second page is missing or damaged
            if page is first and not tiff.pages[1].subfiletype & 1:  # type: ignore[union-attr]
                logger.warning("%s has several pages; only the first is read", path)
    return stored if stored.stated else replace(stored, stated=_space(file, str(path)))


def xmp_of_tiff(file: BinaryIO) -> bytes:
    """Return the XMP packet of an open TIFF file, or b"" if it has none."""
    with _opened(file) as tiff:
        found = tiff.pages[0].tags.valueof(_XMP)  # type: ignore[union-attr]
    return found if isinstance(found, bytes) else b""


def _opened(file: BinaryIO) -> tifffile.TiffFile:
    file.seek(0)
    return tifffile.TiffFile(file, name="")


def _versions(path: Path, tiff: Any, first: Any) -> list[tuple[int | None, Any]]:
    """Return (number, page) for the first page, and (None, page) for each of its SubIFDs.

    If the first page is a thumbnail, also return the other pages.
    """
    found: list[tuple[int | None, Any]] = [(0, first)]
    with suppress(Exception):  # damaged SubIFDs are ignored, as the first page may be intact
        offsets = first.subifds or ()
        places = dict.fromkeys(offsets)  # a file may name one SubIFD many times
        if len(places) > _MAX_VERSIONS:
            told = f"{len(places):,} SubIFDs; only the first {_MAX_VERSIONS} are looked at"
            logger.warning("%s has %s", path, told)
        found += ((None, first.pages[offsets.index(x)]) for x in islice(places, _MAX_VERSIONS))
    with suppress(Exception):  # fails at the first page that the file does not have
        if first.subfiletype & 1:
            found += ((number, tiff.pages[number]) for number in range(1, _MAX_VERSIONS))
    return [pair for pair in found if isinstance(pair[1], tifffile.TiffPage)]


def _check_raw(path: Path, file: BinaryIO, page: Any) -> None:
    """Raise UserError for a RAW photograph, such as a DNG, NEF, ARW or CR2 file."""
    file.seek(8)
    is_canon = file.read(2) == b"CR"
    if is_canon or page.photometric in _RAW or page.compression in _RAW_COMPRESSIONS:
        raise UserError(f"{path} {RAW}")


def _space(file: BinaryIO, name: str) -> ColorSpace | None:
    """Return the colour space that a file's tags state; None for sRGB."""
    exif = Image.Exif()
    with suppress(Exception):  # damaged metadata must not keep the picture from being read
        file.seek(0)
        exif.load_from_fp(file)
    return told(lambda: by_exif(exif), name)


def _is_decoded(page: Any) -> bool:
    """Return whether `_load_page` can decode a page; otherwise Pillow has to decode it."""
    least = _CHANNELS.get(page.photometric, math.inf) + len(page.extrasamples)
    return bool(
        least <= page.samplesperpixel <= _MAX_SAMPLES
        and page.dtype in _DTYPES
        and page.bitspersample == 8 * page.dtype.itemsize
        and page.compression in _BOUNDED
        and max(page.imagedepth, page.tiledepth) == 1
    )


def _load_by_pillow(path: Path, file: BinaryIO, page: Any, number: int | None) -> Stored:
    """Decode a page that `_load_page` cannot decode, such as one with JPEG or fax compression."""
    image = None
    if number is not None and page.bitspersample <= 8:
        with suppress(OSError, SyntaxError, KeyError, ValueError):  # layouts unknown to Pillow
            file.seek(0)
            image = Image.open(file, formats=["TIFF"])
            image.seek(number)
    if image is not None:
        check_size(path, *image.size)
        return load_image(image, str(path))
    kind, packing = (getattr(x, "name", x) for x in (page.photometric, page.compression))
    raise UserError(
        f"{path} has {page.samplesperpixel} {page.bitspersample}-bit {page.dtype} samples per "
        f"pixel, {kind} with compression {packing}, which is not read; save it as "
        "RGB, grey or CMYK with 8 or 16 bits per sample, with LZW, Deflate or no compression"
    )


def _check_page(path: Path, page: Any) -> None:
    """Raise ValueError if a page is damaged, UserError if its decoder is not installed."""
    if page.is_tiled:
        check_size(path, page.tilewidth, page.tilelength)
    if page.compression != COMPRESSION.NONE or page.predictor != 1:
        imagecodecs(f"{path} is a compressed TIFF; save it without compression")
    for offset, size in zip(page.dataoffsets, page.databytecounts, strict=True):
        if not 0 < offset <= offset + size <= page.parent.filehandle.size:
            raise ValueError("strips or tiles lie outside of the file")


def _whole(samples: NDArray[np.floating[Any]], path: Path) -> NDArray[np.uint16]:
    """Convert floats, 0 for black and 1 for white, to 16-bit samples (UserError for NaN)."""
    low, high = float(samples.min()), float(samples.max())
    if not np.isfinite((low, high)).all():
        raise UserError(f"{path} holds NaN or infinity; save it with values from 0 to 1")
    if low < 0.0 or high > 1.0:
        logger.warning("%s holds values from %g to %g, clipped to 0 and 1", path, low, high)
    whole = np.empty(samples.shape, np.uint16)
    for row, floats in zip(whole, samples, strict=True):
        row[...] = np.round(floats.astype(np.float64).clip(0.0, 1.0) * 65535.0)
    return whole


def _load_page(path: Path, page: Any, first: Any) -> Stored:
    """Decode a page; a profile or orientation that it lacks is taken from the `first` page."""
    _check_page(path, page)
    samples = page.asarray(squeeze=False)[:, 0]  # (planes, H, W, samples)
    samples = np.moveaxis(samples, 0, -1).reshape(*samples.shape[1:3], -1)
    if samples.dtype.kind == "f":
        samples = _whole(samples, path)
    channels = _CHANNELS[page.photometric]
    colour, alpha = samples[..., :channels], samples[..., channels : channels + 1]
    if page.photometric == PHOTOMETRIC.PALETTE:
        colour = (page.colormap >> 8).astype(np.uint8).T[colour[..., 0]]
    if page.photometric == PHOTOMETRIC.MINISWHITE:
        colour = np.iinfo(colour.dtype).max - colour
    extra = page.extrasamples[0] if page.extrasamples else EXTRASAMPLE.UNSPECIFIED
    orientation = page.tags.valueof(ORIENTATION, first.tags.valueof(ORIENTATION, 1))
    return Stored(
        colour,
        alpha if extra != EXTRASAMPLE.UNSPECIFIED else None,
        premultiplied=extra == EXTRASAMPLE.ASSOCALPHA,
        stated=page.iccprofile or first.iccprofile,
        orientation=orientation if isinstance(orientation, int) else 1,
    )
