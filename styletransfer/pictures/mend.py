"""Mends PNG files with damaged metadata and JPEG files without an end, which Pillow refuses.

Browsers and viewers show such pictures: the pixels decide, and metadata is left out.
"""

import io
import logging
import re
import zlib
from contextlib import suppress
from typing import BinaryIO

import numpy as np
from PIL import Image

from styletransfer.errors import UserError

logger = logging.getLogger(__name__)

# Most pixels that the scans of a JPEG have together: those of 16 scans of the largest picture. Each
# scan changes all pixels, and may take only a few bytes of the file.
MAX_SCANNED = 2**31
# A JPEG's marker. FF and 0, 1 or D0 to D7 have no content; several FF are one.
_MARKER = re.compile(rb"\xff([\x02-\xcf\xd8-\xfe])")
_SCAN, _END = b"\xda", b"\xd9"
_NOISE = bytes(range(1, 255))  # a decoder takes these bytes for samples if it still misses some

# A PNG's chunks of transparency, colours and orientation.
_KEPT = (b"tRNS", b"cICP", b"sRGB", b"gAMA", b"cHRM", b"eXIf")
_MAX_CHUNK = 2**20  # largest chunk of metadata in bytes that Pillow reads
_MAX_PROFILE = 2**24  # largest ICC profile in bytes that is read


def whole_jpeg(image: Image.Image, file: BinaryIO, name: str) -> Image.Image:
    """Return the Pillow image of a JPEG file, with a warning if the file has no end marker.

    (UserError if the JPEG has too many scans, ValueError if it ends before all of its samples.)
    """
    file.seek(0)
    data = file.read()
    scans, at = 0, 2
    while found := _MARKER.search(data, at):
        if found[1] == _END:
            return image
        scans += found[1] == _SCAN
        if scans * image.width * image.height > MAX_SCANNED:
            size = f"{image.width} x {image.height}"
            raise UserError(f"{name} has {scans} scans or more of {size} pixels; save it anew")
        at = found.end() + int.from_bytes(data[found.end() : found.end() + 2])
    ends = (io.BytesIO(data + more + b"\xff" + _END) for more in (b"", _NOISE))
    ended, noisy = (Image.open(end, formats=["JPEG"]) for end in ends)
    if not np.array_equal(np.asarray(ended), np.asarray(noisy)):
        raise ValueError("samples are missing")
    logger.warning("%s has no end marker; it may have been cut off", name)
    return ended


def plain_png(file: BinaryIO) -> tuple[BinaryIO, bytes | None, list[str]]:
    """Return a copy of a PNG file without most metadata, its ICC profile, and what was left out.

    Chunks of the pixels, colours and orientation are kept, except those with a wrong checksum.
    """
    size = file.seek(0, 2)
    file.seek(0)
    copy, profile, left_out = io.BytesIO(), None, []
    copy.write(file.read(8))
    while len(head := file.read(8)) == 8:
        length, kind = int.from_bytes(head[:4]), head[4:]
        content = file.read(min(length + 4, size))  # with the checksum
        is_right = zlib.crc32(kind + content[:-4]) == int.from_bytes(content[-4:])
        if not kind[0] & 32 or (is_right and kind in _KEPT and length <= _MAX_CHUNK):
            copy.write(head + content)
        elif is_right and kind == b"iCCP":
            profile = _inflated(content[:-4])
        elif kind not in left_out:
            left_out.append(kind)
        if kind == b"IEND":
            break
    return copy, profile, [repr(kind)[2:-1] for kind in left_out]


def _inflated(content: bytes) -> bytes | None:
    """Return the profile in a chunk iCCP: a name, a byte 0, the method 0, and compressed bytes."""
    inflater = zlib.decompressobj()
    with suppress(zlib.error):
        profile = inflater.decompress(content.partition(b"\0")[2][1:], _MAX_PROFILE)
        return None if inflater.unconsumed_tail else profile
    return None
