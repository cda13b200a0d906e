"""Converts samples to sRGB by the ICC profile or the colour space that a picture states."""

import io
import struct
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageCms

from styletransfer.errors import UserError
from styletransfer.formats.color_spaces import ColorSpace
from styletransfer.formats.folders import imagecodecs

Samples = NDArray[np.unsignedinteger[Any]]
Floats = NDArray[np.float32]
Converter = Callable[[Samples], Floats]

# Colour space in an ICC profile's header -> (its name in imagecodecs, its mode in Pillow).
_SPACES = {b"GRAY": ("gray", "L"), b"RGB ": ("rgb", "RGB"), b"CMYK": ("cmyk", "CMYK")}


def converter(colour: Samples, stated: Any, name: str) -> Converter:
    """Return a function that converts samples (H, W, 1, 3 or 4) to sRGB (H, W, 3) in [0, 1].

    `stated` is an ICC profile, a colour space, or None for sRGB. A profile that cannot be used is
    ignored with a warning. (UserError if samples of 16 bits need imagecodecs and it is missing.)
    """
    if isinstance(stated, ColorSpace):
        return plain if colour.shape[2] == 4 else stated.srgb_of
    if not stated or stated == srgb_profile():
        return plain
    try:
        convert = _by_profile(colour, stated, name)
        convert(colour[:1, :1])
    except UserError:
        raise
    except Exception:  # a broken profile raises many kinds of errors
        warnings.warn(f"{name}: its colour profile is unusable and is ignored", stacklevel=2)
        return plain
    return convert


def plain(colour: Samples) -> Floats:
    """Convert samples without an ICC profile to RGB; CMYK becomes (1 - ink)(1 - black)."""
    values = unit(colour)
    if values.shape[2] == 4:
        return (1.0 - values[..., :3]) * (1.0 - values[..., 3:])
    return np.broadcast_to(values, (*values.shape[:2], 3))


def unit(samples: Samples) -> Floats:
    """Return integer samples as float32 in [0, 1]."""
    return np.divide(samples, np.iinfo(samples.dtype).max, dtype=np.float32)


@cache
def srgb_profile() -> bytes:
    """Return an sRGB ICC profile, which has the same bytes in every run."""
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    profile[24:36] = struct.pack(">6H", 2000, 1, 1, 0, 0, 0)  # fixed date in the header
    return bytes(profile)


def _by_profile(colour: Samples, profile: bytes, name: str) -> Converter:
    """Return the conversion of samples like `colour` to sRGB (ValueError if `profile` is unfit)."""
    space, mode = _SPACES[profile[16:20]]
    channels = Image.getmodebands(mode)
    if colour.shape[2] not in (1, channels) or (mode == "CMYK" and colour.shape[2] == 1):
        raise ValueError("the profile is for another colour model")
    is_deep = colour.dtype == np.uint16
    convert = _deep(profile, space, name) if is_deep else _shallow(profile, mode)

    def converted(samples: Samples) -> Floats:
        whole = np.repeat(samples, channels // samples.shape[2], axis=2)
        return convert(whole[..., 0] if channels == 1 else whole)

    return converted


def _shallow(profile: bytes, mode: str) -> Converter:
    """Return the conversion of 8-bit samples to sRGB in [0, 1], rounded to multiples of 1/255."""
    source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
    target = ImageCms.createProfile("sRGB")
    # Without this flag, Little CMS replaces curves by coarse tables, and dark greys are wrong by 9
    # of 255 levels.
    exact = ImageCms.Flags.NOOPTIMIZE
    transform = ImageCms.buildTransform(source, target, mode, "RGB", flags=exact)

    def convert(samples: Samples) -> Floats:
        image = Image.frombytes(mode, samples.shape[1::-1], samples.tobytes())
        return unit(np.asarray(ImageCms.applyTransform(image, transform)))

    return convert


def _deep(profile: bytes, space: str, name: str) -> Converter:
    """Return the conversion of 16-bit samples by imagecodecs; Pillow cannot convert them."""
    codecs = imagecodecs(f"{name} has 16 bits and a colour profile; save it in sRGB")

    def convert(samples: Samples) -> Floats:
        converted: Floats = codecs.cms_transform(
            np.ascontiguousarray(samples),
            profile,
            srgb_profile(),
            colorspace=space,
            outcolorspace="rgb",
            outdtype=np.float32,
        )
        return converted

    return convert
