"""Picture files to sRGB samples: depth, colour model, profile and orientation all end here.

Pillow decodes what has up to 8 bits per sample. It would silently drop the lower byte of deeper
files, so 16-bit PNG is decoded by imagecodecs and 16-bit TIFF by tifffile.
"""

import errno
import math
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import tifffile
from PIL import Image, UnidentifiedImageError
from tifffile import COMPRESSION, EXTRASAMPLE, PHOTOMETRIC
from torch import Tensor

from styletransfer.errors import UserError
from styletransfer.pictures.guard import check_scans, check_size, format_of, quiet_decoders
from styletransfer.pictures.samples import Samples, Stored, to_srgb

# Pillow mode -> the mode to which a picture is converted before its samples are read.
_MODELS = {"1": "L", "L": "L", "LA": "L", "La": "L", "CMYK": "CMYK"} | dict.fromkeys(
    ("P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "YCbCr"), "RGB"
)
# Constants for TIFF. _CHANNELS: colour model -> samples per pixel. _SAMPLES: the supported pairs of
# bits per sample and dtype.
_CHANNELS = {
    PHOTOMETRIC.MINISWHITE: 1,
    PHOTOMETRIC.MINISBLACK: 1,
    PHOTOMETRIC.RGB: 3,
    PHOTOMETRIC.SEPARATED: 4,
}
_SAMPLES = ((8, np.uint8), (16, np.uint16))
_MAX_SAMPLES = 8  # most samples per pixel: four inks, alpha and up to three that are ignored
_MAX_BYTES_PER_PIXEL = 8  # 16-bit RGB with alpha
_JPEG = {COMPRESSION.OJPEG, COMPRESSION.JPEG}
_FOR_PILLOW = _JPEG | {COMPRESSION(x) for x in (2, 3, 4)}  # CCITT, by number: its names vary
# Compressions whose decoders return exactly the number of bytes that the tags state.
_FOR_BOTH = {COMPRESSION[x] for x in ("NONE", "LZW", "ADOBE_DEFLATE", "DEFLATE", "PACKBITS")}
_ORIENTATION, _INK_SET, _NOT_CMYK = 274, 332, 2


def decode(path: Path, max_pixels: int) -> tuple[Tensor, Tensor | None]:
    """Return RGB (1, 3, H, W) and alpha (1, 1, H, W), if any, in [0, 1], upright and in sRGB.

    Of several frames or pages it is the first (UserError: the file cannot be read, is no JPEG, PNG,
    WebP, TIFF, BMP or GIF picture, is damaged or has more than `max_pixels` pixels).
    """
    file_format = _file_format(path)
    load = partial(_load, path, file_format, max_pixels)
    return _converted(load, str(path), f"{file_format} file")


def decode_image(image: Image.Image, name: str) -> tuple[Tensor, Tensor | None]:
    """Return what `decode` does, of a Pillow image; messages call it `name`."""
    return _converted(partial(_load_image, image, name), name, "image")


def _converted(load: Callable[[], Stored], name: str, kind: str) -> tuple[Tensor, Tensor | None]:
    """Load and convert a picture, and turn what goes wrong into one line."""
    try:
        with quiet_decoders():
            stored = load()
        return to_srgb(stored, name)
    except (UserError, MemoryError):
        raise
    except Exception as error:  # decoders raise many kinds of errors for damaged files
        # A damaged offset causes EINVAL; any other errno is an error of the file system.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise UserError(f"{name} cannot be read: {error.strerror}; check the path") from error
        raise UserError(f"{name} is a damaged or truncated {kind}; get an intact copy") from error


def _file_format(path: Path) -> str:
    """Name the format by the file's first bytes, whatever its extension."""
    try:
        if path.is_dir():
            raise UserError(f"{path} is a folder; name a picture file in it")
        if path.exists() and not path.is_file():
            raise UserError(f"{path} is a device or pipe; name a picture file")
        with path.open("rb") as file:
            head = file.read(16)
    except FileNotFoundError:
        raise UserError(f"{path} does not exist; check the path") from None
    except (OSError, ValueError) as error:  # ValueError: a null character
        reason = getattr(error, "strerror", error)
        raise UserError(f"{path} cannot be read: {reason}; check the path") from error
    return format_of(head, str(path))


def _load(path: Path, file_format: str, max_pixels: int) -> Stored:
    if file_format == "TIFF":
        with tifffile.TiffFile(path) as container:
            page = container.pages[0]
            if not _is_for_pillow(path, page, max_pixels):
                return _load_page(path, page, max_pixels)
    elif file_format == "JPEG":
        check_scans(path, path.read_bytes())
    # Pillow gets an open file, not a path: with a path it maps an uncompressed TIFF into memory,
    # and then garbles a rotated one.
    with path.open("rb") as file, Image.open(file, formats=[file_format]) as image:
        check_size(path, *image.size, max_pixels)
        deep = None
        file.seek(24)  # the bit depth in IHDR, which is always a PNG's first chunk
        if file_format == "PNG" and file.read(1) == b"\x10":
            deep = np.atleast_3d(imagecodecs.png_decode(path.read_bytes()))
        return _load_image(image, str(path), deep)


def _load_image(image: Image.Image, name: str, deep: Samples | None = None) -> Stored:
    """Return the samples of a Pillow image; `deep` replaces them by 16-bit samples of the file."""
    if image.mode not in _MODELS and not image.mode.startswith("I;16"):
        raise UserError(f"{name} has {image.mode} colours; save it as RGB, grey or CMYK")
    profile = image.info.get("icc_profile")
    if deep is not None:
        samples, has_alpha = deep, deep.shape[2] in (2, 4)
    elif image.mode.startswith("I;16"):
        samples, has_alpha = np.atleast_3d(np.asarray(image, dtype=np.uint16)), False
    else:
        image.load()
        has_alpha = image.has_transparency_data
        model = _MODELS[image.mode] + ("A" if has_alpha else "")
        samples = np.atleast_3d(np.asarray(image if image.mode == model else image.convert(model)))
    try:  # after load(), where Pillow turns a TIFF upright itself and drops the tag
        orientation = int(image.getexif().get(_ORIENTATION, 1))
    except Exception:  # a picture with damaged metadata is still read
        orientation = 1
    colour, alpha = (samples[..., :-1], samples[..., -1:]) if has_alpha else (samples, None)
    return Stored(colour, alpha, profile=profile, orientation=orientation)


def _is_for_pillow(path: Path, page: Any, max_pixels: int) -> bool:
    """Tell from the tags whether Pillow reads a TIFF page; if not, `_load_page` reads it.

    A UserError says that neither can read it.
    """
    check_size(path, page.imagewidth, page.imagelength, max_pixels)
    model, channels = page.photometric, _CHANNELS.get(page.photometric, 1)
    depth, samples = max(page.imagedepth, page.tiledepth), page.samplesperpixel
    if depth != 1:
        raise _unread(path, f"{depth} slices")
    if not channels + len(page.extrasamples) <= samples <= _MAX_SAMPLES:
        alpha = " and alpha" if page.extrasamples else ""
        raise _unread(path, f"{samples} samples per pixel for {_name(model)}{alpha}")
    if model == PHOTOMETRIC.SEPARATED and page.tags.valueof(_INK_SET) == _NOT_CMYK:
        raise _unread(path, "inks other than CMYK")
    if page.compression in _JPEG:
        _check_segments(page)
        for offset, size in zip(page.dataoffsets, page.databytecounts, strict=True):
            page.parent.filehandle.seek(offset)
            check_scans(path, page.parent.filehandle.read(size))
    if page.bitspersample in (1, 2, 4, 8) and page.compression in _FOR_PILLOW | _FOR_BOTH:
        with suppress(UnidentifiedImageError), path.open("rb") as file:
            Image.open(file, formats=["TIFF"]).close()
            return True
    if (page.bitspersample, page.dtype) not in _SAMPLES or model not in _CHANNELS:
        raise _unread(path, f"{page.bitspersample}-bit {page.dtype} {_name(model)} samples")
    if page.compression not in _FOR_BOTH:
        raise _unread(path, f"{_name(page.compression)} compression")
    return False


def _load_page(path: Path, page: Any, max_pixels: int) -> Stored:
    """Decode a page in a layout that Pillow does not know."""
    length, width = page.imagelength, page.imagewidth
    if page.is_tiled:
        length = math.ceil(length / page.tilelength) * page.tilelength
        width = math.ceil(width / page.tilewidth) * page.tilewidth
    size = width * length * page.samplesperpixel * page.dtype.itemsize
    if size > (limit := max_pixels * _MAX_BYTES_PER_PIXEL):
        raise _unread(path, f"{size:,} bytes of samples, more than the limit of {limit:,}")
    _check_segments(page)
    samples = page.asarray(squeeze=False)[:, 0]  # (planes, H, W, samples)
    samples = np.moveaxis(samples, 0, -1).reshape(*samples.shape[1:3], -1)
    channels = _CHANNELS[page.photometric]
    colour, alpha = samples[..., :channels], samples[..., channels : channels + 1]
    if page.photometric == PHOTOMETRIC.MINISWHITE:
        colour = np.iinfo(colour.dtype).max - colour
    extra = page.extrasamples[0] if page.extrasamples else EXTRASAMPLE.UNSPECIFIED
    orientation = page.tags.valueof(_ORIENTATION, default=1)
    return Stored(
        colour,
        alpha if extra != EXTRASAMPLE.UNSPECIFIED else None,
        premultiplied=extra == EXTRASAMPLE.ASSOCALPHA,
        profile=page.iccprofile,
        orientation=orientation if isinstance(orientation, int) else 1,
    )


def _check_segments(page: Any) -> None:
    """Refuse a page whose tags put strips or tiles, of whatever size, beyond the file's end."""
    end = page.parent.filehandle.size
    for offset, size in zip(page.dataoffsets, page.databytecounts, strict=True):
        if not 0 < offset <= offset + size <= end:
            raise ValueError("strips or tiles are missing")


def _unread(path: Path, reason: str) -> UserError:
    return UserError(
        f"{path} has {reason}, which is not read; save it as RGB, grey or CMYK with 8 or 16 bits "
        "per sample, without compression or with LZW or Deflate"
    )


def _name(value: Any) -> str:
    """Name a tag's value as the specification does, or say its number."""
    return str(getattr(value, "name", value))
