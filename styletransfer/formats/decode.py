"""Reads picture files and Pillow images as sRGB samples.

Pillow decodes most formats, with 8 bits per sample. TIFF is decoded by tifffile, 16-bit PNG by
deep_png, and AVIF and HEIF of 10 and 12 bits by deep_heif: Pillow would drop the lower bits.
"""

import errno
import logging
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from PIL import Image, UnidentifiedImageError

from styletransfer.errors import UserError, pip_install
from styletransfer.formats import deep_heif, deep_png, mend
from styletransfer.formats.folders import picture_formats
from styletransfer.formats.from_pillow import load_image
from styletransfer.formats.profiles import Floats, Samples, converter, unit
from styletransfer.formats.stored import RAW, Stored, check_size

logger = logging.getLogger(__name__)

# RAW files of Canon, Fujifilm, Olympus, Panasonic and Sigma that do not begin like TIFF hold one of
# these marks in their first 32 bytes.
_RAW_MARKS = (b"ftypcrx ", b"FUJIFILMCCD-RAW", b"IIRO", b"IIRS", b"IIU\0", b"FOVb")
_TIFF = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")  # first 4 bytes of TIFF and BigTIFF
_STRIP = 2**18  # pixels converted at once, so that intermediate results need little memory
_LOGS = [logging.getLogger(name) for name in ("tifffile", "imagecodecs")]
_QUIET = threading.RLock()  # all threads share the filters and loggers that `_quiet` changes

Read = tuple[Floats, Floats | None]
"""RGB (3, H, W) in sRGB, and alpha (1, H, W) or None; float32 in [0, 1], upright."""


def read(path: Path) -> Read:
    """Read a picture file, and return its RGB and alpha as `Read` describes them.

    If the file has several frames or pages, the first is returned. (UserError if the file cannot be
    read, is in no known format, is damaged, or has more than MAX_PIXELS pixels.)
    """
    with _refused(str(path)):
        with _quiet():
            stored = _load(path)
        return _to_srgb(stored, str(path))


def read_image(image: Image.Image, name: str) -> Read:
    """Return the RGB and alpha of a Pillow image; error messages call the image `name`."""
    with _refused(name):
        with _quiet():
            stored = load_image(image, name)
        return _to_srgb(stored, name)


def xmp_packet(path: Path) -> bytes:
    """Return a picture's XMP packet, or b"" without one (UserError if it cannot be read)."""
    with _refused(str(path)), _quiet():
        _check_file(path)
        with path.open("rb") as file:
            if (head := file.read(32))[:4] in _TIFF:
                from styletransfer.formats.read_tiff import xmp_of_tiff

                return xmp_of_tiff(file)
            found = mend.read_mended(path, file, lambda copy, _: _xmp(path, copy, head))
        return found if isinstance(found, bytes) else b""


def _xmp(path: Path, file: BinaryIO, head: bytes) -> Any:
    with _opened(path, file, head) as image:
        return image.info.get("xmp")


@contextmanager
def _refused(name: str) -> Iterator[None]:
    """Turn every error in the `with` block, except a lack of memory, into a UserError."""
    try:
        yield
    except (UserError, MemoryError):
        raise
    except FileNotFoundError:
        raise UserError(f"{name} does not exist; check the path") from None
    except Exception as error:  # decoders raise many kinds of errors for damaged files
        # A damaged file may cause EINVAL; any other errno comes from the file system.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise UserError(f"{name} cannot be read: {error.strerror}; check the path") from error
        raise UserError(f"{name} is damaged or truncated; get an intact copy") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Mute warnings and decoders' log messages, because a UserError reports damage in one line."""
    with _QUIET, warnings.catch_warnings(action="ignore"):
        disabled = [log.disabled for log in _LOGS]
        for log in _LOGS:
            log.disabled = True
        try:
            yield
        finally:
            for log, before in zip(_LOGS, disabled, strict=True):
                log.disabled = before


def _check_file(path: Path) -> None:
    """Raise UserError if `path` is a folder, a device or a pipe."""
    if path.is_dir():
        raise UserError(f"{path} is a folder; name a picture file in it")
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is a device or pipe; name a picture file")


def _load(path: Path) -> Stored:
    _check_file(path)
    with path.open("rb") as file:
        head = file.read(32)
        if head[:4] in _TIFF:
            from styletransfer.formats.read_tiff import load_tiff

            return load_tiff(path, file)
        return mend.read_mended(path, file, partial(_load_file, path, head))


def _load_file(path: Path, head: bytes, file: BinaryIO, profile: bytes | None) -> Stored:
    """Return the samples of a file that Pillow opens; use the ICC profile `profile`, if given."""
    file.seek(0)
    with _opened(path, file, head) as image:
        check_size(path, *image.size)
        if head[:2] == b"\xff\xd8":
            image = mend.whole_jpeg(image, file, str(path))
        if profile:
            image.info["icc_profile"] = profile
        stored = load_image(image, str(path), _deep_samples(image, path, file, head))
        with suppress(Exception):  # a later frame may be damaged, but it is not read
            if image.format in ("AVIF", "GIF", "PNG", "WEBP") and image.is_animated:  # type: ignore[attr-defined]
                logger.warning("%s is animated; only its first frame is read", path)
        return stored


def _deep_samples(image: Image.Image, path: Path, file: BinaryIO, head: bytes) -> Samples | None:
    """Return samples of more than 8 bits as uint16; None means that Pillow reads the file."""
    if image.format == "PNG" and head[24] == 16:  # byte 24 is the number of bits per sample
        return deep_png.read(file)
    return deep_heif.read(path, image.format) if image.format in ("AVIF", "HEIF") else None


def _opened(path: Path, file: BinaryIO, head: bytes) -> Image.Image:
    """Open a file as a Pillow image; its first bytes, not its name, tell the format."""
    formats = picture_formats()
    if head[:2] == b"\xff\xd8":
        mend.check_jpeg(file, str(path))
    try:
        return Image.open(file, formats=formats)
    except Image.DecompressionBombError:
        limit = f"{2 * (Image.MAX_IMAGE_PIXELS or 0):,} pixels, Pillow's limit"
        raise UserError(f"{path} has more than {limit}; shrink it first") from None
    except UnidentifiedImageError:
        problem = f"is damaged, or in none of the formats {', '.join(formats)}"
    if not head:
        problem = "is empty (0 bytes); get an intact copy"
    elif any(mark in head for mark in _RAW_MARKS):
        problem = RAW
    elif "HEIF" not in formats and head[4:11] in (b"ftyphei", b"ftyphev", b"ftypmif"):
        problem = f"is a HEIC picture; save it as JPEG, or run: {pip_install('studio')}"
    raise UserError(f"{path} {problem}")


def _to_srgb(stored: Stored, name: str) -> Read:
    """Turn stored samples upright and convert them to sRGB; warnings call the picture `name`."""
    colour = _upright(stored.colour, stored.orientation)
    alpha = None if stored.alpha is None else _upright(stored.alpha, stored.orientation)
    convert = converter(colour, stored.stated, name)
    height, width, _ = colour.shape
    rgb = np.empty((3, height, width), np.float32)
    rows, largest = max(1, _STRIP // width), np.iinfo(colour.dtype).max
    for strip in (slice(top, top + rows) for top in range(0, height, rows)):
        part = colour[strip]
        if alpha is not None and stored.premultiplied:
            straight = np.round(part * (float(largest) / np.maximum(alpha[strip], 1)))
            part = np.minimum(straight, largest).astype(part.dtype)
        rgb[:, strip] = convert(part).clip(0.0, 1.0).transpose(2, 0, 1)
    return rgb, None if alpha is None else np.ascontiguousarray(unit(alpha).transpose(2, 0, 1))


def _upright(picture: Samples, orientation: int) -> Samples:
    """Turn samples (H, W, C) upright by an EXIF orientation; an unknown one changes nothing."""
    if orientation in (5, 6, 7, 8):
        picture = picture.transpose(1, 0, 2)
    if orientation in (3, 4, 7, 8):
        picture = picture[::-1]
    if orientation in (2, 3, 6, 7):
        picture = picture[:, ::-1]
    return picture
