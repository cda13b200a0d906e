"""TIFF files: checked by their tags, and read by tifffile where Pillow cannot.

Pillow knows most layouts of up to 8 bits per sample. It would drop the lower byte of deeper files,
and does not know every compression.
"""

import io
import math
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, UnidentifiedImageError
from tifffile import COMPRESSION, EXTRASAMPLE, PHOTOMETRIC

from styletransfer.errors import UserError
from styletransfer.pictures.limits import check_scans, check_size
from styletransfer.pictures.profiles import Stored

# Colour models and their samples per pixel.
_CHANNELS = {
    PHOTOMETRIC.MINISWHITE: 1,
    PHOTOMETRIC.MINISBLACK: 1,
    PHOTOMETRIC.RGB: 3,
    PHOTOMETRIC.SEPARATED: 4,
}
# Four inks, alpha and some that are passed over; more are no picture.
_MAX_SAMPLES = 8
_MAX_BYTES_PER_PIXEL = 8  # 16 bits of RGB and alpha
_INK_SET, _NOT_CMYK = 332, 2
_ORIENTATION = 0x0112
# These decoders return as many bytes as the tags call for.
_BYTE_CODECS = {
    COMPRESSION.NONE,
    COMPRESSION.LZW,
    COMPRESSION.ADOBE_DEFLATE,
    COMPRESSION.DEFLATE,
    COMPRESSION.PACKBITS,
    COMPRESSION.LZMA,
    COMPRESSION.ZSTD,
}
# These return whatever size is in the compressed data, which Pillow can tell beforehand.
_IMAGE_CODECS = {
    COMPRESSION.JPEG2000: "JPEG2000",
    COMPRESSION.PNG: "PNG",
    COMPRESSION.WEBP: "WEBP",
}


def is_for_pillow(path: Path, page: Any, max_pixels: int) -> bool:
    """Tell from the tags whether Pillow reads this page, or else `load` can.

    Args:
        path: for the messages.
        page: a `tifffile.TiffPage`.
        max_pixels: the largest width * height.

    Raises:
        UserError: neither does, or the page is too large or contradicts itself.
    """
    check_size(path, page.imagewidth, page.imagelength, max_pixels)
    if (page.imagedepth, page.tiledepth) != (1, 1):
        raise UserError(f"{path} is a volume of {page.imagedepth} slices; save one of them")
    _check_samples(path, page)
    if page.compression in (COMPRESSION.OJPEG, COMPRESSION.JPEG):
        for jpeg in _segments(page):
            check_scans(path, jpeg)
    # WebP is left to tifffile: Pillow is often built without it, and notices late.
    if page.bitspersample in (1, 2, 4, 8) and page.compression != COMPRESSION.WEBP:
        with suppress(UnidentifiedImageError), path.open("rb") as file:
            Image.open(file, formats=["TIFF"]).close()
            return True
    _check_readable(path, page)
    _check_decoded_size(path, page, max_pixels)
    return False


def load(page: Any) -> Stored:
    """Decode a page that `is_for_pillow` has left to tifffile."""
    samples = page.asarray(squeeze=False)[:, 0]  # (planes, H, W, samples): one of the two is 1
    samples = np.moveaxis(samples, 0, -1).reshape(*samples.shape[1:3], -1)
    count = _CHANNELS[page.photometric]
    alpha = None
    extra = page.extrasamples[0] if page.extrasamples else EXTRASAMPLE.UNSPECIFIED
    if extra != EXTRASAMPLE.UNSPECIFIED:
        alpha = samples[..., count : count + 1]
    orientation = page.tags.valueof(_ORIENTATION, default=1)
    return Stored(
        samples[..., :count],
        alpha,
        premultiplied=extra == EXTRASAMPLE.ASSOCALPHA,
        inverted=page.photometric == PHOTOMETRIC.MINISWHITE,
        profile=page.iccprofile,
        orientation=orientation if isinstance(orientation, int) else 1,
    )


def _check_samples(path: Path, page: Any) -> None:
    """Refuse a number of samples per pixel that does not suit the colour model."""
    samples, needed = page.samplesperpixel, _CHANNELS.get(page.photometric, 1)
    if samples > _MAX_SAMPLES:
        raise UserError(
            f"{path} has {samples} samples per pixel, more than the limit of {_MAX_SAMPLES}; "
            "save it as RGB, grey or CMYK"
        )
    if samples < needed + len(page.extrasamples):
        model = _name(page.photometric) + (" and alpha" if page.extrasamples else "")
        raise UserError(
            f"{path} has {samples} samples per pixel, too few for {model}; "
            "save it as RGB, grey or CMYK"
        )
    if page.photometric == PHOTOMETRIC.SEPARATED and page.tags.valueof(_INK_SET) == _NOT_CMYK:
        raise UserError(f"{path} has inks other than CMYK; save it as RGB, grey or CMYK")


def _check_readable(path: Path, page: Any) -> None:
    """Refuse samples and compressions that `load` does not know."""
    if (
        page.dtype not in (np.uint8, np.uint16)
        or page.bitspersample not in (8, 16)
        or (page.photometric not in _CHANNELS)
    ):
        raise UserError(
            f"{path} has {page.bitspersample}-bit {page.dtype} {_name(page.photometric)} samples; "
            "save it with 8 or 16 bits per sample as RGB, grey or CMYK"
        )
    if page.compression not in _BYTE_CODECS and page.compression not in _IMAGE_CODECS:
        raise UserError(
            f"{path} is compressed as {_name(page.compression)}, which is not read; "
            "save it without compression, or with LZW or Deflate"
        )


def _check_decoded_size(path: Path, page: Any, max_pixels: int) -> None:
    """Refuse a page whose samples, tiles or embedded pictures are larger than they should be.

    Raises:
        UserError: it is refused.
        ValueError: strips or tiles are missing.
    """
    length, width = page.imagelength, page.imagewidth
    if page.is_tiled:
        length = math.ceil(length / page.tilelength) * page.tilelength
        width = math.ceil(width / page.tilewidth) * page.tilewidth
    size = width * length * page.samplesperpixel * page.dtype.itemsize
    limit = max_pixels * _MAX_BYTES_PER_PIXEL
    if size > limit:
        raise UserError(
            f"{path} has {size:,} bytes of samples, more than the limit of {limit:,}; "
            "shrink it first, or save it as RGB"
        )
    if len(page.dataoffsets) != math.prod(page.chunked):
        raise ValueError("strips or tiles are missing")
    tile = page.tilewidth * page.tilelength if page.is_tiled else width * page.rowsperstrip
    for data in _segments(page):
        if page.compression in _IMAGE_CODECS:
            with Image.open(io.BytesIO(data), formats=[_IMAGE_CODECS[page.compression]]) as image:
                if image.width * image.height > tile:
                    raise UserError(
                        f"{path} holds {image.width} x {image.height} pixels where its tags say "
                        f"{tile:,} in all; get an intact copy"
                    )


def _segments(page: Any) -> Iterator[bytes]:
    """Yield the strips or tiles as they are stored.

    Raises:
        ValueError: the file ends before they do.
    """
    file = page.parent.filehandle
    for offset, size in zip(page.dataoffsets, page.databytecounts, strict=True):
        if not 0 < offset <= offset + size <= file.size:
            raise ValueError("strips or tiles are missing")
        file.seek(offset)
        yield file.read(size)


def _name(value: Any) -> str:
    """Name a tag's value as the specification does, or say its number."""
    return str(getattr(value, "name", value))
