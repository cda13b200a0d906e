"""Stored samples to colours, sRGB in [0, 1] and upright, and colours to the bytes of a file."""

import io
import struct
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import tifffile
import torch
from numpy.typing import NDArray
from PIL import Image, ImageCms
from torch import Tensor

Samples = NDArray[np.unsignedinteger[Any]]
Floats = NDArray[np.float32]

# Colour space in an ICC profile's header -> (its name in imagecodecs, its number of channels).
_PROFILE_SPACES = {b"GRAY": ("gray", 1), b"RGB ": ("rgb", 3), b"CMYK": ("cmyk", 4)}
_STRIP = 2**18  # pixels converted at once, so that intermediate results need little memory
_ROWS = 64  # rows converted to samples at once, and rows of a strip in a TIFF file


@dataclass(frozen=True)
class Stored:
    """One picture as its file stores it."""

    colour: Samples  # (H, W, 1 grey | 3 RGB | 4 CMYK where the largest value is full ink)
    alpha: Samples | None = None  # (H, W, 1)
    premultiplied: bool = False  # the colours were multiplied by alpha
    profile: Any = None  # the ICC profile's bytes, or whatever a broken file holds in their place
    orientation: int = 1  # EXIF, 1 to 8


@cache
def srgb_profile() -> bytes:
    """Return an sRGB ICC profile: the same bytes in every run."""
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    profile[24:36] = struct.pack(">6H", 2000, 1, 1, 0, 0, 0)  # the header's creation date
    return bytes(profile)


def to_srgb(stored: Stored, name: str) -> tuple[Tensor, Tensor | None]:
    """Return sRGB (1, 3, H, W) and alpha (1, 1, H, W) in [0, 1], upright; errors say `name`."""
    colour = _upright(stored.colour, stored.orientation)
    alpha = None if stored.alpha is None else _upright(stored.alpha, stored.orientation)
    profile = _usable_profile(colour, stored.profile, name)
    height, width, _ = colour.shape
    rgb = np.empty((3, height, width), np.float32)
    rows, largest = max(1, _STRIP // width), np.iinfo(colour.dtype).max
    for strip in (slice(top, top + rows) for top in range(0, height, rows)):
        part = colour[strip]
        if alpha is not None and stored.premultiplied:
            straight = np.round(part * (float(largest) / np.maximum(alpha[strip], 1)))
            part = np.minimum(straight, largest).astype(part.dtype)
        converted = _plain(part) if profile is None else _with_profile(part, profile)
        rgb[:, strip] = converted.clip(0.0, 1.0).transpose(2, 0, 1)
    if alpha is None:
        return torch.from_numpy(rgb)[None], None
    opacity = np.ascontiguousarray(_unit(alpha).transpose(2, 0, 1))
    return torch.from_numpy(rgb)[None], torch.from_numpy(opacity)[None]


def _unit(samples: Samples) -> Floats:
    """Divide by the largest value of the samples' type."""
    return np.divide(samples, np.iinfo(samples.dtype).max, dtype=np.float32)


def _plain(colour: Samples) -> Floats:
    """Convert samples without a profile: RGB and grey as sRGB; each ink absorbs its complement."""
    values = _unit(colour)
    if values.shape[2] == 4:
        return (1.0 - values[..., :3]) * (1.0 - values[..., 3:])
    return np.broadcast_to(values, (*values.shape[:2], 3))


def _with_profile(colour: Samples, profile: bytes) -> Floats:
    """Convert by an ICC profile, to floats so that no depth is lost."""
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


def _usable_profile(colour: Samples, profile: Any, name: str) -> bytes | None:
    """Return the profile, if one is needed and converts the first pixel."""
    if not profile or profile == srgb_profile():
        return None
    try:
        _with_profile(colour[:1, :1], profile)
    except (KeyError, TypeError, ValueError, imagecodecs.CmsError):
        warnings.warn(f"{name}: its colour profile is unusable and is ignored", stacklevel=2)
        return None
    return bytes(profile)


def _upright(picture: Samples, orientation: int) -> Samples:
    """Undo an EXIF orientation: a transposition, then flips; unknown values change nothing."""
    if orientation in (5, 6, 7, 8):
        picture = picture.transpose(1, 0, 2)
    if orientation in (3, 4, 7, 8):
        picture = picture[::-1]
    if orientation in (2, 3, 6, 7):
        picture = picture[:, ::-1]
    return picture


def encode(layers: list[Tensor], depth: int, extension: str) -> bytes:
    """Return a .png, .webp, .jpg or .jpeg file of colours (1, 3, H, W), and alpha if there is any.

    JPEG lies on white (OSError, ValueError: the format cannot hold so many pixels).
    """
    on_white = extension in (".jpg", ".jpeg")
    samples = np.concatenate(list(_strips(layers, depth, on_white=on_white)))
    profile = srgb_profile()
    if depth == 16:  # Pillow cannot write 16-bit RGB
        png = memoryview(imagecodecs.png_encode(samples))
        tag = b"iCCP" + b"sRGB\0\0" + zlib.compress(profile)
        chunk = struct.pack(">I", len(tag) - 4) + tag + struct.pack(">I", zlib.crc32(tag))
        return b"".join((png[:33], chunk, png[33:]))  # behind the signature and IHDR
    buffer = io.BytesIO()
    options: dict[str, dict[str, Any]] = {
        ".png": {"format": "PNG"},
        ".webp": {"format": "WEBP", "lossless": True, "exact": True},
    }
    jpeg = {"format": "JPEG", "quality": 95, "subsampling": 0}
    Image.fromarray(samples).save(buffer, icc_profile=profile, **options.get(extension, jpeg))
    return buffer.getvalue()


def write_tiff(path: Path, layers: list[Tensor], depth: int) -> None:
    """Write a TIFF file strip by strip, so that a large picture is in memory only once."""
    height, width = layers[0].shape[2:]
    channels = sum(layer.shape[1] for layer in layers)
    # Differences between neighbouring samples (TIFF's tag "predictor") compress better.
    compressed = (
        bytes(imagecodecs.zlib_encode(imagecodecs.delta_encode(strip, axis=1).tobytes()))
        for strip in _strips(layers, depth)
    )
    tifffile.imwrite(
        path,
        compressed,
        shape=(height, width, channels),
        dtype=np.uint8 if depth == 8 else np.uint16,
        rowsperstrip=min(_ROWS, height),
        photometric="rgb",
        extrasamples=["unassalpha"] if channels == 4 else None,
        compression="zlib",
        predictor=True,
        iccprofile=srgb_profile(),
        software=False,
        metadata=None,
    )


def _strips(layers: list[Tensor], depth: int, *, on_white: bool = False) -> Iterator[NDArray[Any]]:
    """Yield a picture from top to bottom as (rows, W, 3 or 4) integers."""
    for top in range(0, layers[0].shape[2], _ROWS):
        rows = [layer[0, :, top : top + _ROWS].detach() for layer in layers]
        strip = torch.cat([x.to("cpu", torch.float32) for x in rows]).clamp(0.0, 1.0)
        if on_white and len(layers) == 2:
            strip = 1.0 + strip[3:] * (strip[:3] - 1.0)
        samples = (strip * (2**depth - 1)).round().permute(1, 2, 0).numpy()
        yield np.ascontiguousarray(samples, np.uint8 if depth == 8 else np.uint16)
