"""Reads what a picture file states about its colours, such as an ICC profile or a gamma."""

import logging
import os
import struct
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from functools import cache
from typing import Any, BinaryIO, TypeVar, cast

from PIL import Image

from styletransfer.formats.color_spaces import (
    ADOBE_RGB,
    SRGB,
    ColorSpace,
    UnknownColorsError,
    by_chromaticities,
    by_cicp,
    gamma,
    srgb,
)
from styletransfer.formats.heif_boxes import nclx_of

T = TypeVar("T")

logger = logging.getLogger(__name__)

Stated = bytes | ColorSpace | None
"""An ICC profile, a colour space, or None if the file states sRGB, or nothing."""

# Numbers of EXIF tags; TIFF has the same numbers.
_TRANSFER, _WHITE, _PRIMARIES, _EXIF, _INTEROP = 0x12D, 0x13E, 0x13F, 0x8769, 0xA005
_COLOR_SPACE, _GAMMA = 0xA001, 0xA500
_IS_SRGB, _IS_ADOBE_RGB, _IS_UNCALIBRATED = 1, 2, 0xFFFF  # values of _COLOR_SPACE
# A PNG's chunk gAMA holds 1 / gamma. Programs that write sRGB store this value.
_GAMMA_OF_SRGB = 0.45455
_MAX_PROFILE = 2**24  # largest number of bytes of a profile that are read
_BMP_CALIBRATED, _BMP_PROFILE, _BMP_LINKED = bytes(4), b"DEBM", b"KNIL"


def stated_colors(image: Image.Image, name: str) -> Stated:
    """Return what a Pillow image's file states about its colours.

    Call it before the samples are read, because Pillow may close the file when it reads them. If a
    statement cannot be converted, a warning says so and calls the picture `name`. A copy of a
    Pillow image still has ICC, EXIF, gAMA, cHRM and HEIF's nclx, but not what Pillow leaves in
    the file: PNG's cICP, AVIF's nclx, BMP's header and TIFF's tags.
    """

    def read() -> Stated:
        return _in_file(image) or _in_info(image.info) or by_exif(image.getexif())

    return told(read, name, image.info.get("icc_profile"))


def told(read: Callable[[], T], name: str, otherwise: Any = None) -> T | None:
    """Return what `read` returns, with None in place of a colour space that is sRGB.

    If the colours cannot be converted or the metadata is damaged, the result is `otherwise`, and a
    warning names the picture, unless the file ends early.
    """
    try:
        found = read()
    except UnknownColorsError as unknown:
        logger.warning("%s states %s, which is not converted; read as sRGB", name, unknown)
    except OSError:  # the file ends early: the decoder will report it if samples are missing
        pass
    except Exception as damage:  # damaged metadata must not keep the picture from being read
        logger.warning("%s states colours that cannot be read (%r); read as sRGB", name, damage)
    else:
        return None if isinstance(found, ColorSpace) and found.is_srgb else found
    return cast("T | None", otherwise)


@cache  # so that a film gives one warning, not one for each frame
def frame_colors(primaries: int, transfer: int, name: str) -> ColorSpace | None:
    """Return the colour space of two codes of ITU-T H.273 in a film; None for sRGB.

    If the codes have no conversion, log a warning with the film's `name`, and return None.
    """
    return told(lambda: by_cicp(primaries, transfer), name)


def by_exif(exif: Any) -> ColorSpace | None:
    """Return the colour space of EXIF or TIFF tags; None for sRGB (UnknownColorsError if unknown).

    Cameras state Adobe RGB as "uncalibrated" with the interoperability index R03 (DCF 2.0).
    """
    tags = exif.get_ifd(_EXIF)
    kind = tags.get(_COLOR_SPACE)
    interop = exif.get_ifd(_INTEROP).get(1, "") if _INTEROP in tags else ""
    if kind == _IS_SRGB:
        return None
    if kind == _IS_ADOBE_RGB or str(interop).startswith("R03"):
        return ColorSpace(ADOBE_RGB, gamma(563 / 256))
    if _GAMMA in tags:
        raise UnknownColorsError(f"the gamma {float(tags[_GAMMA]):g} (EXIF)")
    if _TRANSFER in exif:
        raise UnknownColorsError("a TransferFunction (TIFF)")
    if _PRIMARIES in exif:
        white = exif.get(_WHITE, SRGB[6:])
        return by_chromaticities(tuple(map(float, (*exif[_PRIMARIES], *white))), srgb)
    # Programs such as libvips state "uncalibrated" in sRGB files, so this value alone is ignored.
    if kind not in (None, _IS_UNCALIBRATED):
        raise UnknownColorsError(f"the colour space {kind} (EXIF)")
    return None


def _in_file(image: Image.Image) -> Stated:
    """Read colours that Pillow itself does not read: PNG's cICP, AVIF's nclx, BMP's header."""
    if image.format == "PNG" and (cicp := _from_file(image, b"\x89PNG", _cicp)):
        return by_cicp(*cicp[:2])
    is_avif = image.format == "AVIF" and "icc_profile" not in image.info
    if is_avif and (numbers := _from_file(image, b"ftyp", nclx_of)):
        return by_cicp(*numbers)
    return _from_file(image, b"BM", _bmp_profile) if image.format == "BMP" else None


def _in_info(info: Mapping[Any, Any]) -> Stated:
    """Return colours that Pillow has read: an ICC profile, HEIF's nclx, PNG's sRGB, gAMA, cHRM."""
    if profile := info.get("icc_profile"):
        return cast(bytes, profile)
    if box := info.get("nclx_profile"):
        return by_cicp(box["color_primaries"], box["transfer_characteristics"])
    if "srgb" in info:
        return ColorSpace()
    if "chromaticity" not in info and "gamma" not in info:
        return None
    stated, exponent = info.get("chromaticity"), info.get("gamma", _GAMMA_OF_SRGB)
    primaries = (*stated[2:8], *stated[:2]) if stated else SRGB
    is_near = abs(exponent - _GAMMA_OF_SRGB) < 0.001
    if is_near and ("gamma" not in info or ColorSpace(primaries).is_srgb):
        return by_chromaticities(primaries, srgb)
    if not 0.1 <= exponent <= 10.0:
        raise UnknownColorsError(f"the gamma {exponent:g} (gAMA)")
    return by_chromaticities(primaries, gamma(1.0 / exponent))


def _cicp(file: BinaryIO) -> bytes:
    """Return the content of a PNG's chunk cICP, or b"" if there is none before the samples."""
    file.seek(8)
    while len(head := file.read(8)) == 8 and head[4:] != b"IDAT":
        length = int.from_bytes(head[:4])
        if head[4:] == b"cICP":
            return file.read(4) if length == 4 else b""
        file.seek(length + 4, 1)
    return b""


def _bmp_profile(file: BinaryIO) -> bytes | None:
    """Return the ICC profile in a BMP, or None (UnknownColorsError if it has other colours)."""
    header = file.read(14 + 124)[14:]
    size = int.from_bytes(header[:4], "little")
    kind = header[56:60] if size >= 108 else b""
    if kind == _BMP_PROFILE and size >= 124:
        offset, length = struct.unpack("<II", header[112:120])
        file.seek(14 + offset)
        return file.read(min(length, _MAX_PROFILE))
    if kind == _BMP_LINKED:
        raise UnknownColorsError("a profile in another file")
    if kind == _BMP_CALIBRATED and any(header[60:96]):
        raise UnknownColorsError("chromaticities and a gamma (BMP)")
    return None


def _from_file(image: Image.Image, signature: bytes, read: Callable[[BinaryIO], T]) -> T | None:
    """Return read(file) for a Pillow image's file, or None.

    The result is None if the file is gone or lacks `signature`, or if `read` raises OSError or
    ValueError. The position of an open file is restored; a closed file is opened by its path.
    """
    file: Any = getattr(image, "fp", None)
    with suppress(OSError, ValueError), ExitStack() as stack:
        if file is None or file.closed:
            path = os.fsdecode(getattr(image, "filename", ""))
            file = stack.enter_context(open(path, "rb"))
        stack.callback(file.seek, file.tell())
        file.seek(0)
        if signature in file.read(8):
            file.seek(0)
            return read(file)
    return None
