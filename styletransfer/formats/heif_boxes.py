"""Reads the boxes of AVIF and HEIF files, which say how their pictures are stored.

The boxes are those of ISO/IEC 14496-12 (ISO base media) and 23008-12 (pictures in it).
"""

import struct
from collections.abc import Iterator
from typing import BinaryIO

_MOST = 2**24  # largest number of bytes of metadata that are read
# The most boxes that are read inside one box. The properties of all pictures are boxes in one box,
# and a picture names its properties by numbers of 15 bits, so no readable file has more.
_MOST_BOXES = 2**15


def nclx_of(file: BinaryIO) -> tuple[int, int] | None:
    """Return the codes (primaries, transfer) of ITU-T H.273, or None if no box nclx states them."""
    for kind, content in _properties(file):
        if kind == b"colr" and content[:4] == b"nclx":
            primaries, transfer = struct.unpack(">HH", content[4:8])
            return primaries, transfer
    return None


def bits_of(file: BinaryIO) -> int:
    """Return the bits per sample of the first channel, or 8 if the file does not state them."""
    for kind, content in _properties(file):
        if kind == b"pixi" and len(content) > 5:
            return content[5]
    return 8


def _properties(file: BinaryIO) -> Iterator[tuple[bytes, bytes]]:
    """Yield (kind, content) of the boxes that describe the primary picture of an open file."""
    meta = dict(_boxes(_meta(file)[4:]))
    properties = dict(_boxes(meta.get(b"iprp", b"")))
    boxes = [*_boxes(properties.get(b"ipco", b""))]
    # The box pitm holds the primary picture's number: 2 bytes in version 0, 4 in later versions.
    pitm = meta.get(b"pitm", b"")
    primary = int.from_bytes(pitm[4:8] if pitm[:1] > b"\0" else pitm[4:6])
    for number in _associated(properties.get(b"ipma", b""), primary):
        if 0 < number <= len(boxes):
            yield boxes[number - 1]


def _meta(file: BinaryIO) -> bytes:
    """Return the content of the box "meta" of an open file, or b"" if there is none."""
    file.seek(0)
    while len(head := file.read(8)) == 8:
        size, kind = int.from_bytes(head[:4]), head[4:]
        length = size - 8
        if size == 1:
            length = int.from_bytes(file.read(8)) - 16
        if kind == b"meta" or size == 0 or length < 0:
            return file.read(min(length, _MOST) if length >= 0 else _MOST)
        file.seek(length, 1)
    return b""


def _boxes(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield (kind, content) of the boxes in `data`."""
    at = 0
    for _ in range(_MOST_BOXES):
        if at + 8 > len(data):
            return
        size = int.from_bytes(data[at : at + 4]) or len(data) - at
        start = 16 if size == 1 else 8
        size = int.from_bytes(data[at + 8 : at + 16]) if size == 1 else size
        if size < start:
            return
        yield data[at + 4 : at + 8], data[at + start : at + size]
        at += size


def _associated(box: bytes, picture: int) -> list[int]:
    """Return the numbers, counted from 1, of the properties that a box ipma lists for a picture."""
    if len(box) < 8:
        return []
    wide_picture, step = box[0] > 0, 2 if box[3] & 1 else 1
    place = 8
    for _ in range(int.from_bytes(box[4:8])):
        end = place + (4 if wide_picture else 2)
        found, count = int.from_bytes(box[place:end]), box[end] if end < len(box) else 0
        place = end + 1 + count * step
        if found == picture:
            numbers = (box[at : at + step] for at in range(end + 1, place, step))
            return [int.from_bytes(each) & (2 ** (8 * step - 1) - 1) for each in numbers]
        if place >= len(box):
            break
    return []
