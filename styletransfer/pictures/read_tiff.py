"""Reads TIFF files by tifffile: Pillow would drop the lower byte of 16-bit samples."""

import logging
import math
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import tifffile
from tifffile import COMPRESSION, EXTRASAMPLE, PHOTOMETRIC

from styletransfer.errors import UserError
from styletransfer.pictures.decode import ORIENTATION, Stored, check_size
from styletransfer.pictures.formats import imagecodecs

logger = logging.getLogger(__name__)

# TIFF colour model -> samples per pixel.
_CHANNELS = {
    PHOTOMETRIC.MINISWHITE: 1,
    PHOTOMETRIC.MINISBLACK: 1,
    PHOTOMETRIC.PALETTE: 1,
    PHOTOMETRIC.RGB: 3,
    PHOTOMETRIC.SEPARATED: 4,
}
# TIFF compressions whose decoders return at most the number of bytes that the tags state.
_BOUNDED = {COMPRESSION[x] for x in ("NONE", "LZW", "ADOBE_DEFLATE", "DEFLATE", "PACKBITS")}
_MAX_SAMPLES = 8  # most samples per pixel of a TIFF file: four inks, alpha, and three ignored


def load_tiff(path: Path, file: BinaryIO) -> Stored:
    """Return the samples of the first page of an open file (UserError: unknown layout)."""
    with tifffile.TiffFile(file, name=path.name) as tiff:
        stored = _load_page(path, tiff.pages[0])
        with suppress(Exception):  # there is no second page, or it is damaged
            if not tiff.pages[1].subfiletype & 1:  # type: ignore[union-attr]
                logger.warning("%s has several pages; only the first is read", path)
        return stored


def _check_page(path: Path, page: Any) -> None:
    """Raise UserError if the page has a layout that `_load_page` does not decode."""
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
        or page.subfiletype & 1
    ):
        kind, packing = (getattr(x, "name", x) for x in (page.photometric, page.compression))
        thumbnail = ", a thumbnail" if page.subfiletype & 1 else ""
        raise UserError(
            f"{path} has {page.samplesperpixel} {page.bitspersample}-bit {page.dtype} samples per "
            f"pixel, {kind} with compression {packing}{thumbnail}, which is not read; save it as "
            "RGB, grey or CMYK with 8 or 16 bits per sample, with LZW, Deflate or no compression"
        )
    if page.compression != COMPRESSION.NONE:
        imagecodecs(f"{path} is a compressed TIFF; save it without compression")
    for offset, size in zip(page.dataoffsets, page.databytecounts, strict=True):
        if not 0 < offset <= offset + size <= page.parent.filehandle.size:
            raise ValueError("strips or tiles lie outside of the file")


def _load_page(path: Path, page: Any) -> Stored:
    """Decode a TIFF page."""
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
    orientation = page.tags.valueof(ORIENTATION, default=1)
    return Stored(
        colour,
        alpha if extra != EXTRASAMPLE.UNSPECIFIED else None,
        premultiplied=extra == EXTRASAMPLE.ASSOCALPHA,
        profile=page.iccprofile,
        orientation=orientation if isinstance(orientation, int) else 1,
    )
