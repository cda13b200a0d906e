"""Samples of any depth and colour model to sRGB in [0, 1], upright."""

import struct
import warnings
from functools import cache
from typing import Any

import imagecodecs
import numpy as np
from numpy.typing import NDArray
from PIL import ImageCms

Samples = NDArray[np.unsignedinteger[Any]]
Floats = NDArray[np.float32]

# The colour space named in an ICC profile's header -> its name in imagecodecs, its channels.
_PROFILE_SPACES = {b"GRAY": ("gray", 1), b"RGB ": ("rgb", 3), b"CMYK": ("cmyk", 4)}


@cache
def srgb_profile() -> bytes:
    """Return an sRGB ICC profile: the same bytes in every run."""
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    profile[24:36] = struct.pack(">6H", 2000, 1, 1, 0, 0, 0)  # the header's creation date
    return bytes(profile)


def unit(samples: Samples) -> Floats:
    """Divide by the largest value of the samples' type."""
    return np.divide(samples, np.iinfo(samples.dtype).max, dtype=np.float32)


def to_srgb(colour: Samples, profile: bytes | None, name: str) -> Floats:
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
            warnings.warn(f"{name}: its colour profile is unusable and is ignored", stacklevel=2)
    values = unit(colour)
    if values.shape[2] == 4:  # CMYK without a profile: each ink takes away its complement
        return (1.0 - values[..., :3]) * (1.0 - values[..., 3:])
    return values if values.shape[2] == 3 else np.repeat(values, 3, axis=2)


def upright(picture: Floats, orientation: int) -> Floats:
    """Undo an EXIF orientation: a transposition, then flips; unknown values change nothing."""
    if orientation in (5, 6, 7, 8):
        picture = picture.transpose(1, 0, 2)
    if orientation in (3, 4, 7, 8):
        picture = picture[::-1]
    if orientation in (2, 3, 6, 7):
        picture = picture[:, ::-1]
    return picture
