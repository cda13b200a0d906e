"""Guards around picture decoders: limits that are checked in the headers, and muted warnings."""

import logging
import os
import re
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from PIL import Image

from styletransfer.errors import UserError, pip_install

# Largest number of scans of a progressive JPEG. Each scan is a pass over the whole picture; usual
# files have ten.
_MAX_SCANS = 100

# First bytes of a file -> its format. _HEIF has the brands of HEIF, the format of many phones,
# which needs the extra [studio].
_SIGNATURES = {
    b"\xff\xd8\xff": "JPEG",
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"RIFF": "WEBP",
    b"BM": "BMP",
    b"GIF8": "GIF",
} | dict.fromkeys((b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"), "TIFF")
_HEIF = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1")

# A JPEG marker, the byte 255 and its code. The code 0 is excluded because it stands for a sample of
# 255, and D0 to D7 because restart markers are part of a scan.
_MARKER = re.compile(rb"\xff([\x01-\xcf\xd8-\xfe])")
_START_OF_IMAGE, _END_OF_IMAGE, _START_OF_SCAN = 0xD8, 0xD9, 0xDA

_LOGS = [logging.getLogger(name) for name in ("tifffile", "imagecodecs")]
_ONE_AT_A_TIME = threading.RLock()  # warnings and standard error are per process, not per thread


def format_of(head: bytes, name: str) -> str:
    """Name the format of a picture by its first 16 bytes (UserError: it is none that is read)."""
    if not head:
        raise UserError(f"{name} is empty (0 bytes); get an intact copy")
    if head[4:8] == b"ftyp" and head[8:12] in _HEIF:
        if find_spec("pillow_heif") is None:
            advice = f"save it as JPEG, or run: {pip_install('studio')}"
            raise UserError(f"{name} is a HEIC picture; {advice}")
        import pillow_heif

        pillow_heif.register_heif_opener(thumbnails=False)
        return "HEIF"
    for signature, known in _SIGNATURES.items():
        if head.startswith(signature) and (known != "WEBP" or head[8:12] == b"WEBP"):
            return known
    raise UserError(f"{name} is no JPEG, PNG, WebP, TIFF, BMP or GIF picture, whatever its name")


def check_size(path: Path, width: int, height: int, max_pixels: int) -> None:
    """Refuse a picture without pixels, or with more than `max_pixels`, by a UserError."""
    if width < 1 or height < 1:
        raise UserError(f"{path} has {width} x {height} pixels; get an intact copy")
    if width * height > max_pixels:
        raise UserError(
            f"{path} has {width} x {height} = {width * height:,} pixels, "
            f"more than the limit of {max_pixels:,}; shrink it first"
        )


def check_scans(path: Path, jpeg: bytes) -> None:
    """Refuse a JPEG of more than 100 scans by a UserError."""
    scans = position = 0
    while (match := _MARKER.search(jpeg, position)) and match[1][0] != _END_OF_IMAGE:
        marker, position = match[1][0], match.end()
        if marker in (_START_OF_IMAGE, 0x01):  # without a length
            continue
        scans += marker == _START_OF_SCAN
        position += int.from_bytes(jpeg[position : position + 2], "big")
    if scans > _MAX_SCANS:
        raise UserError(
            f"{path} has {scans:,} JPEG scans, more than the limit of {_MAX_SCANS}; "
            "save it anew as a baseline JPEG"
        )


@contextmanager
def quiet_decoders() -> Iterator[None]:
    """Mute the decoders' warnings, and disable Pillow's size limit, as `check_size` has its own."""
    with _ONE_AT_A_TIME, _no_standard_error(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
        disabled = [log.disabled for log in _LOGS]
        for log in _LOGS:
            log.disabled = True
        try:
            yield
        finally:
            Image.MAX_IMAGE_PIXELS = limit
            for log, before in zip(_LOGS, disabled, strict=True):
                log.disabled = before


@contextmanager
def _no_standard_error() -> Iterator[None]:
    """Discard the process's standard error, to which libtiff writes directly."""
    try:
        before = os.dup(2)
    except OSError:  # standard error is closed
        yield
        return
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)
