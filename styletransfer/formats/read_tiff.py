"""Reads TIFF files by tifffile: Pillow would drop the lower byte of 16-bit samples."""

import logging
import math
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import tifffile
from PIL import Image
from tifffile import COMPRESSION, EXTRASAMPLE, PHOTOMETRIC

from styletransfer.errors import UserError
from styletransfer.formats.color_spaces import ColorSpace
from styletransfer.formats.folders import imagecodecs
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
_RAW = (PHOTOMETRIC.CFA, PHOTOMETRIC.LINEAR_RAW)  # colour models of sensors
_RAW_COMPRESSIONS = (32767, 34713, 65535)  # numbers of compressions by Sony, Nikon and Pentax
# TIFF compressions whose decoders return at most the number of bytes that the tags state.
_BOUNDED = {COMPRESSION[x] for x in ("NONE", "LZW", "ADOBE_DEFLATE", "DEFLATE", "PACKBITS")}
_MAX_SAMPLES = 8  # most samples per pixel that are read: four inks, alpha, and three ignored


def load_tiff(path: Path, file: BinaryIO) -> Stored:
    """Return the samples of the picture of an open file (UserError if its layout is unknown).

    The picture is the first page, unless that page has a larger one in its SubIFDs, or is marked as
    a thumbnail of a larger page.
    """
    with tifffile.TiffFile(file, name=path.name) as tiff:
        first = tiff.pages[0]
        page = max(_versions(tiff, first), key=lambda page: page.imagewidth * page.imagelength)
        _check_raw(path, file, page)
        stored = _load_page(path, page, first)
        with suppress(Exception):  # there is no second page, or it is damaged
            if page is first and not tiff.pages[1].subfiletype & 1:  # type: ignore[union-attr]
                logger.warning("%s has several pages; only the first is read", path)
    return stored if stored.stated else replace(stored, stated=_space(file, str(path)))


def _versions(tiff: Any, first: Any) -> list[Any]:
    """Return the first page and its SubIFDs; also the other pages if the first is a thumbnail."""
    found = [first]
    with suppress(Exception):  # damaged versions do not matter
        found += first.pages or []
    with suppress(Exception):
        found += tiff.pages[1:] if first.subfiletype & 1 else []
    return [page for page in found if isinstance(page, tifffile.TiffPage)]


def _check_raw(path: Path, file: BinaryIO, page: Any) -> None:
    """Raise UserError for the samples of a sensor, as in DNG, NEF, ARW and CR2."""
    file.seek(8)
    is_canon = file.read(2) == b"CR"
    if is_canon or page.photometric in _RAW or page.compression in _RAW_COMPRESSIONS:
        raise UserError(f"{path} {RAW}")


def _space(file: BinaryIO, name: str) -> ColorSpace | None:
    """Return the colour space that a file's tags state; None for sRGB."""
    exif = Image.Exif()
    with suppress(Exception):  # a picture with damaged metadata is still read
        file.seek(0)
        exif.load_from_fp(file)
    return told(lambda: by_exif(exif), name)


def _check_page(path: Path, page: Any) -> None:
    """Raise UserError for a layout that `_load_page` does not decode, ValueError for damage."""
    check_size(path, page.imagewidth, page.imagelength)
    if page.is_tiled:
        check_size(path, page.tilewidth, page.tilelength)
    least = _CHANNELS.get(page.photometric, math.inf) + len(page.extrasamples)
    if (
        not least <= page.samplesperpixel <= _MAX_SAMPLES
        or page.bitspersample not in (8, 16)
        or page.dtype not in (np.uint8, np.uint16)
        or page.compression not in _BOUNDED
        or max(page.imagedepth, page.tiledepth) != 1
    ):
        kind, packing = (getattr(x, "name", x) for x in (page.photometric, page.compression))
        raise UserError(
            f"{path} has {page.samplesperpixel} {page.bitspersample}-bit {page.dtype} samples per "
            f"pixel, {kind} with compression {packing}, which is not read; save it as "
            "RGB, grey or CMYK with 8 or 16 bits per sample, with LZW, Deflate or no compression"
        )
    if page.compression != COMPRESSION.NONE:
        imagecodecs(f"{path} is a compressed TIFF; save it without compression")
    for offset, size in zip(page.dataoffsets, page.databytecounts, strict=True):
        if not 0 < offset <= offset + size <= page.parent.filehandle.size:
            raise ValueError("strips or tiles lie outside of the file")


def _load_page(path: Path, page: Any, first: Any) -> Stored:
    """Decode a page; a profile or orientation that it lacks is taken from the `first` page."""
    _check_page(path, page)
    samples = page.asarray(squeeze=False)[:, 0]  # (planes, H, W, samples)
    samples = np.moveaxis(samples, 0, -1).reshape(*samples.shape[1:3], -1)
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
