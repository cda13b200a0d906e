"""Picture files to sRGB samples: depth, colour model, profile and orientation all end here.

Pillow decodes everything that has 8 bits per sample. It would silently drop the lower byte of
deeper files, so 16-bit PNG is decoded by imagecodecs and 16-bit TIFF by tifffile.
"""

import logging
import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import tifffile
from numpy.typing import NDArray
from PIL import Image, ImageCms

from styletransfer.errors import UserError

Samples = NDArray[np.unsignedinteger[Any]]
Floats = NDArray[np.float32]

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
# The colour space named in an ICC profile's header -> its name in imagecodecs, its channels.
_PROFILE_SPACES = {b"GRAY": ("gray", 1), b"RGB ": ("rgb", 3), b"CMYK": ("cmyk", 4)}
_EXIF_ORIENTATION = 0x0112


@dataclass(frozen=True)
class _Stored:
    """One picture as its file stores it."""

    colour: Samples  # (H, W, 1 grey | 3 RGB | 4 CMYK where the largest value is full ink)
    alpha: Samples | None  # (H, W, 1)
    profile: bytes | None
    orientation: int  # EXIF, 1 to 8


def decode(path: Path, max_pixels: int) -> tuple[Floats, Floats | None]:
    """Decode a picture file, upright and in sRGB.

    Args:
        path: a JPEG, PNG, WebP, TIFF, BMP or GIF file; of several frames or pages, the first.
        max_pixels: the largest width * height that is decoded.

    Returns:
        RGB (H, W, 3) and alpha (H, W, 1) in [0, 1]; alpha is None where the file holds none.

    Raises:
        UserError: if the file cannot be read, is no such picture, is damaged or is too large.
    """
    file_format = _file_format(path)
    try:
        with _quiet_decoders():
            stored = _load(path, file_format, max_pixels)
    except (UserError, MemoryError):
        raise
    except Exception as error:  # a decoder fed with broken bytes raises nearly anything
        raise UserError(
            f"{path} is a damaged or truncated {file_format} file; get an intact copy"
        ) from error
    rgb = np.clip(_to_srgb(stored.colour, stored.profile, path), 0.0, 1.0, dtype=np.float32)
    alpha = None if stored.alpha is None else _upright(_unit(stored.alpha), stored.orientation)
    return _upright(rgb, stored.orientation), alpha


@cache
def srgb_profile() -> bytes:
    """Return an sRGB ICC profile: the same bytes in every run."""
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    profile[24:36] = struct.pack(">6H", 2000, 1, 1, 0, 0, 0)  # the header's creation date
    return bytes(profile)


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
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}; check the path") from error
    if not head:
        raise UserError(f"{path} is empty (0 bytes); get an intact copy")
    for signature, name in _SIGNATURES.items():
        if head.startswith(signature) and (name != "WEBP" or head[8:12] == b"WEBP"):
            return name
    raise UserError(f"{path} is no JPEG, PNG, WebP, TIFF, BMP or GIF picture, whatever its name")


@contextmanager
def _quiet_decoders() -> Iterator[None]:
    """Hold back remarks about odd metadata, and Pillow's size limit: ours names both numbers."""
    limit = Image.MAX_IMAGE_PIXELS
    Image.MAX_IMAGE_PIXELS = None
    log = logging.getLogger("tifffile")
    was_disabled, log.disabled = log.disabled, True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        Image.MAX_IMAGE_PIXELS = limit
        log.disabled = was_disabled


def _load(path: Path, file_format: str, max_pixels: int) -> _Stored:
    if file_format == "TIFF":
        with tifffile.TiffFile(path) as tiff:
            page: Any = tiff.pages[0]
            _check_size(path, page.imagewidth, page.imagelength, max_pixels)
            if page.bitspersample > 8:
                return _load_deep_tiff(path, page)
    # Not by its path: Pillow would map an uncompressed TIFF into memory, and scrambles turned ones.
    with path.open("rb") as file, Image.open(file, formats=[file_format]) as image:
        _check_size(path, *image.size, max_pixels)
        if image.mode not in _MODELS and not image.mode.startswith("I;16"):
            raise UserError(f"{path} has {image.mode} colours; save it as RGB, grey or CMYK")
        profile = image.info.get("icc_profile")
        if file_format == "PNG" and _is_deep_png(path):
            samples = _with_channels(imagecodecs.png_decode(path.read_bytes()))
            has_alpha = samples.shape[2] in (2, 4)
        else:
            image.load()
            has_alpha = image.has_transparency_data
            model = _MODELS[image.mode] + ("A" if has_alpha else "")
            samples = _with_channels(np.asarray(image.convert(model)))
        # Asked after load(): there Pillow turns a TIFF upright itself and drops the tag.
        orientation = _orientation(image)
    if has_alpha:
        return _Stored(samples[..., :-1], samples[..., -1:], profile, orientation)
    return _Stored(samples, None, profile, orientation)


def _load_deep_tiff(path: Path, page: Any) -> _Stored:
    channels = {"MINISBLACK": 1, "MINISWHITE": 1, "RGB": 3, "SEPARATED": 4}
    model = getattr(page.photometric, "name", "unknown")
    if page.dtype != np.uint16 or page.bitspersample != 16 or model not in channels:
        raise UserError(
            f"{path} has {page.bitspersample}-bit {page.dtype} {model} samples; "
            "save it with 8 or 16 bits per sample as RGB, grey or CMYK"
        )
    samples = _with_channels(page.asarray())
    if page.axes == "SYX":
        samples = samples.transpose(1, 2, 0)
    count = channels[model]
    colour, alpha = samples[..., :count], None
    if model == "MINISWHITE":
        colour = 65535 - colour
    if page.extrasamples and page.extrasamples[0] != tifffile.EXTRASAMPLE.UNSPECIFIED:
        alpha = samples[..., count : count + 1]
        if page.extrasamples[0] == tifffile.EXTRASAMPLE.ASSOCALPHA:  # premultiplied
            straight = colour * (65535.0 / np.maximum(alpha, 1))
            colour = np.minimum(np.round(straight), 65535).astype(np.uint16)
    return _Stored(colour, alpha, page.iccprofile, page.tags.valueof(_EXIF_ORIENTATION, default=1))


def _check_size(path: Path, width: int, height: int, max_pixels: int) -> None:
    if width * height > max_pixels:
        raise UserError(
            f"{path} has {width} x {height} = {width * height:,} pixels, "
            f"more than the limit of {max_pixels:,}; shrink it first"
        )


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


def _unit(samples: Samples) -> Floats:
    return np.divide(samples, np.iinfo(samples.dtype).max, dtype=np.float32)


def _to_srgb(colour: Samples, profile: bytes | None, path: Path) -> Floats:
    """Convert (H, W, 1 | 3 | 4) samples to sRGB (H, W, 3), in floats so that no depth is lost."""
    if profile and profile != srgb_profile():
        try:
            space, channels = _PROFILE_SPACES[profile[16:20]]
            if colour.shape[2] == 1 and channels == 3:
                colour = np.repeat(colour, 3, axis=2)
            if colour.shape[2] != channels:
                raise ValueError("the profile is for another colour model")
            converted: Floats = imagecodecs.cms_transform(
                np.ascontiguousarray(colour.squeeze(2) if channels == 1 else colour),
                profile,
                srgb_profile(),
                colorspace=space,
                outcolorspace="rgb",
                outdtype=np.float32,
            )
            return converted
        except (KeyError, ValueError, imagecodecs.CmsError):
            warnings.warn(f"{path}: its colour profile is unusable and is ignored", stacklevel=2)
    unit = _unit(colour)
    if unit.shape[2] == 4:  # CMYK without a profile: each ink takes away its complement
        return (1.0 - unit[..., :3]) * (1.0 - unit[..., 3:])
    return unit if unit.shape[2] == 3 else np.repeat(unit, 3, axis=2)


def _upright(picture: Floats, orientation: int) -> Floats:
    """Undo an EXIF orientation: a transposition, then flips; unknown values change nothing."""
    if orientation in (5, 6, 7, 8):
        picture = picture.transpose(1, 0, 2)
    if orientation in (3, 4, 7, 8):
        picture = picture[::-1]
    if orientation in (2, 3, 6, 7):
        picture = picture[:, ::-1]
    return picture
