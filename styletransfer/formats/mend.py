"""Reads PNG and WebP with damaged metadata, and JPEG without an end marker; Pillow refuses these.

Browsers show such pictures if their pixels are intact. So damaged metadata is left out here.
"""

import io
import logging
import re
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, TypeVar

import numpy as np
from PIL import Image

from styletransfer.errors import UserError

T = TypeVar("T")

logger = logging.getLogger(__name__)

# Largest product of scans and pixels of a JPEG: 16 scans of the largest picture that is read. A
# scan of a few bytes may change all pixels, so a small file could keep the decoder busy for long.
MAX_SCANNED = 2**31
# Pattern of a JPEG marker that begins a segment: FF, which may be repeated, and the segment's kind.
# FF before 0, 1 or D0 to D7 begins no segment.
_MARKER = re.compile(rb"\xff([\x02-\xcf\xd8-\xfe])")
_SCAN, _END = b"\xda", b"\xd9"
_FRAMES = tuple(bytes([kind]) for kind in range(0xC0, 0xD0) if kind not in (0xC4, 0xC8, 0xCC))
# _MAX_SEGMENTS: largest number of segments before the first scan. Between two segments, every
# _MAX_SKIPPED bytes that belong to no segment count as another segment.
_MAX_SEGMENTS, _MAX_SKIPPED = 2**12, 2**8
# `whole_jpeg` appends these bytes to a JPEG without an end marker. If that changes the decoded
# samples, some samples are missing in the file.
_NOISE = bytes(range(1, 255))

# PNG chunks of transparency, colours and orientation, which are kept if they are not damaged.
_KEPT = (b"tRNS", b"cICP", b"sRGB", b"gAMA", b"cHRM", b"eXIf")
# WebP's chunk of metadata -> the bit in the header that says that the file has this chunk.
_WEBP_FLAGS = {b"ICCP": 0x20, b"EXIF": 0x08, b"XMP ": 0x04}
_MAX_CHUNK = 2**20  # a chunk of _KEPT with more bytes is left out of the copy
_MAX_PROFILE = 2**24  # largest ICC profile in bytes that is read


def check_jpeg(file: BinaryIO, name: str) -> None:
    """Raise UserError if a JPEG file has too many segments of metadata, or too many scans."""
    file.seek(0)
    segments = scans = pixels = 0
    for kind, skipped, content in _segments(file.read()):
        scans += kind == _SCAN
        if kind in _FRAMES:
            pixels = int.from_bytes(content[1:3]) * int.from_bytes(content[3:5])
        if scans == 0:
            segments += 1 + skipped // _MAX_SKIPPED
        if segments > _MAX_SEGMENTS:
            raise UserError(f"{name} has more than {_MAX_SEGMENTS} segments; save it anew")
        if scans * pixels > MAX_SCANNED:
            raise UserError(f"{name} has {scans} scans or more of {pixels:,} pixels; save it anew")


def whole_jpeg(image: Image.Image, file: BinaryIO, name: str) -> Image.Image:
    """Return the Pillow image of a JPEG file, with a warning if the file has no end marker.

    (ValueError if samples are missing at its end.)
    """
    file.seek(0)
    data = file.read()
    if any(kind == _END for kind, *_ in _segments(data)):
        return image
    ends = (io.BytesIO(data + more + b"\xff" + _END) for more in (b"", _NOISE))
    ended, noisy = (Image.open(end, formats=["JPEG"]) for end in ends)
    if not np.array_equal(np.asarray(ended), np.asarray(noisy)):
        raise ValueError("samples are missing")
    logger.warning("%s has no end marker; it may have been cut off", name)
    return ended


def _segments(data: bytes) -> Iterator[tuple[bytes, int, bytes]]:
    """Yield (kind, skipped, start) for each segment of a JPEG, up to the end marker.

    `skipped` is the number of bytes between the segment and the one before it, and `start` are the
    first bytes of its content.
    """
    at = 2
    while found := _MARKER.search(data, at):
        kind, start = found[1], found.end()
        yield kind, found.start() - at, data[start + 2 : start + 8]
        if kind == _END:
            return
        at = start + int.from_bytes(data[start : start + 2])


def read_mended(path: Path, file: BinaryIO, read: Callable[[BinaryIO, bytes | None], T]) -> T:
    """Return read(file, None); if this fails for a PNG or a WebP, return read(copy, profile).

    The copy lacks the damaged metadata, which a warning names. `profile` is the ICC profile of a
    PNG, or None.
    """
    file.seek(0)
    profiles = 0
    if file.read(4) == b"\x89PNG":
        file.seek(0)  # in memory: a chunk may claim 4 GB, and only its real bytes are then read
        file = io.BytesIO(file.read())
        profiles = file.getvalue().count(b"iCCP")
    try:
        if profiles > 1:
            raise ValueError("several profiles, which Pillow would all inflate")
        return read(file, None)
    except MemoryError:
        raise
    except Exception:
        file.seek(0)
        kind = file.read(12)
        if kind[:4] == b"\x89PNG":
            copy, profile, left_out = _plain_png(file)
        elif kind[8:] == b"WEBP":
            (copy, left_out), profile = _plain_webp(file), None
        else:
            raise
        found = read(copy, profile)
        if left_out:
            names = ", ".join(repr(name.strip())[2:-1] for name in left_out[:8])
            logger.warning("%s: left out damaged metadata: %s", path, names)
        return found


def _plain_png(file: BinaryIO) -> tuple[BinaryIO, bytes | None, list[bytes]]:
    """Return a copy of a PNG's pixels and colours, its ICC profile, and names of damaged chunks."""
    size = file.seek(0, 2)
    file.seek(0)
    copy, profile, wrong = io.BytesIO(), None, {}
    copy.write(file.read(8))
    while len(head := file.read(8)) == 8:
        length, kind = int.from_bytes(head[:4]), head[4:]
        content = file.read(min(length + 4, size))  # the content and a checksum of 4 bytes
        is_right = zlib.crc32(kind + content[:-4]) == int.from_bytes(content[-4:])
        if not kind[0] & 32 or (is_right and kind in _KEPT and length <= _MAX_CHUNK):
            copy.write(head + content)
        elif is_right and kind == b"iCCP" and profile is None:
            profile = _inflated(content[:-4])
        elif not is_right or length > _MAX_CHUNK or kind == b"zTXt":
            wrong[kind] = True
        if kind == b"IEND":
            break
    return copy, profile, [*wrong]


def _plain_webp(file: BinaryIO) -> tuple[BinaryIO, list[bytes]]:
    """Return a copy of a WebP without incomplete chunks, and the names of the metadata it lost."""
    file.seek(12)
    data, at = file.read(), 0
    chunks, flags, lost = [], 0, []
    while len(head := data[at : at + 8]) == 8:
        end = at + 8 + int.from_bytes(head[4:], "little")
        if end <= len(data):
            chunks.append(data[at:end] + bytes(end % 2))
            flags |= _WEBP_FLAGS.get(head[:4], 0)
        at = end + end % 2
    if chunks and chunks[0][:4] == b"VP8X" and len(chunks[0]) > 8:  # byte 8: the flags
        lost = [kind for kind, flag in _WEBP_FLAGS.items() if chunks[0][8] & ~flags & flag]
        frames = chunks[0][8] & ~sum(_WEBP_FLAGS.values())
        chunks[0] = chunks[0][:8] + bytes([frames | flags]) + chunks[0][9:]
    body = b"".join([b"WEBP", *chunks])
    return io.BytesIO(b"RIFF" + struct.pack("<I", len(body)) + body), lost


def _inflated(content: bytes) -> bytes | None:
    """Return the ICC profile in a PNG's chunk iCCP, or None if it is damaged or too large.

    The chunk has a name, a zero byte, the compression method (0), and the compressed profile.
    """
    inflater = zlib.decompressobj()
    with suppress(zlib.error):
        profile = inflater.decompress(content.partition(b"\0")[2][1:], _MAX_PROFILE)
        return None if inflater.unconsumed_tail else profile
    return None
