"""Picture files to sRGB samples: depth, colour model, profile and orientation all end here.

Pillow decodes everything that has 8 bits per sample. It would silently drop the lower byte of
deeper files, so 16-bit PNG is decoded by imagecodecs and 16-bit TIFF by tifffile (tiff.py).
"""

import errno
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import tifffile
from numpy.typing import NDArray
from PIL import Image

from styletransfer.errors import UserError
from styletransfer.pictures import tiff
from styletransfer.pictures.limits import check_scans, check_size
from styletransfer.pictures.profiles import Floats, Samples, Stored, to_srgb
from styletransfer.pictures.quiet import quiet_decoders

_SIGNATURES = {
    b"\xff\xd8\xff": "JPEG",
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"RIFF": "WEBP",
    b"II*\0": "TIFF",
    b"MM\0*": "TIFF",
    b"II+\0": "TIFF",
    b"MM\0+": "TIFF",
    b"BM": "BMP",
    b"GIF8": "GIF",
}
# Pillow's mode -> the colour model in which its samples are taken.
_MODELS = {"1": "L", "L": "L", "LA": "L", "La": "L", "CMYK": "CMYK"} | dict.fromkeys(
    ("P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "YCbCr"), "RGB"
)
_EXIF_ORIENTATION = 0x0112


# What decoders raise when they are fed with broken bytes; those of imagecodecs are RuntimeErrors,
# that of tifffile is a ValueError.
_DAMAGE = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
    zlib.error,
)


def decode(path: Path, max_pixels: int) -> tuple[Floats, Floats | None]:
    """Decode a picture file, upright and in sRGB.

    Args:
        path: a JPEG, PNG, WebP, TIFF, BMP or GIF file; of several frames or pages, the first.
        max_pixels: the largest width * height that is decoded.

    Returns:
        RGB (3, H, W) and alpha (1, H, W) in [0, 1]; alpha is None where the file holds none.

    Raises:
        UserError: if the file cannot be read, is no such picture, is damaged or is too large.
    """
    file_format = _file_format(path)
    with _one_line(str(path), f"{file_format} file"):
        with quiet_decoders():
            stored = _load(path, file_format, max_pixels)
        return to_srgb(stored, str(path))


def decode_image(image: Image.Image, name: str) -> tuple[Floats, Floats | None]:
    """Return what `decode` does, of a Pillow image; messages call it `name`.

    Raises:
        UserError: if its colours are none that we know, or its file turns out to be damaged.
    """
    with _one_line(name, "image"):
        with quiet_decoders():
            stored = _load_image(image, name)
        return to_srgb(stored, name)


@contextmanager
def _one_line(name: str, kind: str) -> Iterator[None]:
    """Turn what goes wrong in decoding and conversion into one line."""
    try:
        yield
    except _DAMAGE as error:
        # A damaged offset leads to EINVAL; anything else is the file system's own trouble.
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
    except ValueError as error:  # a null character
        raise UserError(f"{path} cannot be read: {error}; check the path") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}; check the path") from error
    if not head:
        raise UserError(f"{path} is empty (0 bytes); get an intact copy")
    for signature, name in _SIGNATURES.items():
        if head.startswith(signature) and (name != "WEBP" or head[8:12] == b"WEBP"):
            return name
    raise UserError(f"{path} is no JPEG, PNG, WebP, TIFF, BMP or GIF picture, whatever its name")


def _load(path: Path, file_format: str, max_pixels: int) -> Stored:
    if file_format == "TIFF":
        with tifffile.TiffFile(path) as container:
            page = container.pages[0]
            if not tiff.is_for_pillow(path, page, max_pixels):
                return tiff.load(page)
    elif file_format == "JPEG":
        check_scans(path, path.read_bytes())
    # Not by its path: Pillow would map an uncompressed TIFF into memory, and scrambles turned ones.
    with path.open("rb") as file, Image.open(file, formats=[file_format]) as image:
        check_size(path, *image.size, max_pixels)
        deep = None
        if file_format == "PNG" and _is_deep_png(path):
            deep = _with_channels(imagecodecs.png_decode(path.read_bytes()))
        return _load_image(image, str(path), deep)


def _load_image(image: Image.Image, name: str, deep: Samples | None = None) -> Stored:
    """Take the samples of a Pillow image, or those of 16 bits that Pillow would shorten."""
    if image.mode not in _MODELS and not image.mode.startswith("I;16"):
        raise UserError(f"{name} has {image.mode} colours; save it as RGB, grey or CMYK")
    profile = image.info.get("icc_profile")
    if deep is not None:
        samples, has_alpha = deep, deep.shape[2] in (2, 4)
    elif image.mode.startswith("I;16"):
        samples, has_alpha = _with_channels(np.asarray(image, dtype=np.uint16)), False
    else:
        image.load()
        has_alpha = image.has_transparency_data
        model = _MODELS[image.mode] + ("A" if has_alpha else "")
        shown = image if image.mode == model else image.convert(model)
        samples = _with_channels(np.asarray(shown))
    # Asked after load(): there Pillow turns a TIFF upright itself and drops the tag.
    orientation = _orientation(image)
    colour, alpha = (samples[..., :-1], samples[..., -1:]) if has_alpha else (samples, None)
    return Stored(colour, alpha, profile=profile, orientation=orientation)


def _is_deep_png(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(25)[24] == 16  # the bit depth in IHDR, which is always the first chunk


def _orientation(image: Image.Image) -> int:
    try:
        return int(image.getexif().get(_EXIF_ORIENTATION, 1))
    except Exception:  # corrupt metadata must not cost the picture
        return 1


def _with_channels(samples: NDArray[Any]) -> NDArray[Any]:
    return samples[..., None] if samples.ndim == 2 else samples
