"""Pictures to files: integer samples, made a few rows at a time, and their encodings."""

import io
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import tifffile
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from styletransfer.pictures.profiles import srgb_profile

ROWS = 64
"""Rows of a picture that are turned into samples at a time, and of a strip of a TIFF file."""


def strips(layers: list[Tensor], depth: int, *, on_white: bool = False) -> Iterator[NDArray[Any]]:
    """Yield a picture from top to bottom as (rows, W, 3 or 4) integers.

    Args:
        layers: colours (1, 3, H, W), and alpha (1, 1, H, W) if there is any.
        depth: 8 or 16 bits per sample.
        on_white: lay the picture on white instead of keeping alpha.
    """
    # A few rows at a time: a picture of 24 million pixels has 288 MB in float32.
    for top in range(0, layers[0].shape[2], ROWS):
        given = [layer[0, :, top : top + ROWS].detach() for layer in layers]
        strip = torch.cat([each.to("cpu", torch.float32) for each in given]).clamp(0.0, 1.0)
        if on_white and len(layers) == 2:
            strip = 1.0 + strip[3:] * (strip[:3] - 1.0)
        samples = (strip * (2**depth - 1)).round().permute(1, 2, 0).numpy()
        yield np.ascontiguousarray(samples, np.uint8 if depth == 8 else np.uint16)


def samples_of(layers: list[Tensor], depth: int, *, on_white: bool) -> NDArray[Any]:
    """Return all strips of a picture as one array; see `strips`."""
    height, width = layers[0].shape[2:]
    channels = 3 if on_white else sum(layer.shape[1] for layer in layers)
    samples = np.empty((height, width, channels), np.uint8 if depth == 8 else np.uint16)
    for number, strip in enumerate(strips(layers, depth, on_white=on_white)):
        samples[number * ROWS : number * ROWS + len(strip)] = strip
    return samples


def write_tiff(path: Path, layers: list[Tensor], depth: int) -> None:
    """Write a TIFF file strip by strip, so that a large picture is in memory only once.

    Args:
        path: of the file.
        layers: colours and alpha, see `strips`.
        depth: 8 or 16 bits per sample.
    """
    height, width = layers[0].shape[2:]
    channels = sum(layer.shape[1] for layer in layers)
    # Differences between neighbours, which the tag "predictor" announces, deflate better.
    compressed = (
        bytes(imagecodecs.zlib_encode(imagecodecs.delta_encode(strip, axis=1).tobytes()))
        for strip in strips(layers, depth)
    )
    tifffile.imwrite(
        path,
        compressed,
        shape=(height, width, channels),
        dtype=np.uint8 if depth == 8 else np.uint16,
        rowsperstrip=min(ROWS, height),
        photometric="rgb",
        extrasamples=["unassalpha"] if channels == 4 else None,
        compression="zlib",
        predictor=True,
        iccprofile=srgb_profile(),
        software=False,
        metadata=None,
    )


def encode(samples: NDArray[Any], extension: str) -> bytes | memoryview:
    """Return a file of (H, W, 3 or 4) uint8 or uint16 samples.

    Args:
        samples: of colours and alpha.
        extension: ".png", ".webp", ".jpg" or ".jpeg".

    Raises:
        OSError, ValueError: the format cannot hold so many pixels.
    """
    profile = srgb_profile()
    if extension == ".png" and samples.dtype == np.uint16:  # Pillow writes no 16-bit RGB
        png = memoryview(imagecodecs.png_encode(samples))
        tag = b"iCCP" + b"sRGB\0\0" + zlib.compress(profile)
        chunk = struct.pack(">I", len(tag) - 4) + tag + struct.pack(">I", zlib.crc32(tag))
        # Behind the signature and IHDR, before the pixels.
        return b"".join((png[:33], chunk, png[33:]))
    buffer = io.BytesIO()
    options: dict[str, dict[str, Any]] = {
        ".png": {"format": "PNG"},
        ".webp": {"format": "WEBP", "lossless": True, "exact": True},
    }
    jpeg = {"format": "JPEG", "quality": 95, "subsampling": 0}
    Image.fromarray(samples).save(buffer, icc_profile=profile, **options.get(extension, jpeg))
    return buffer.getbuffer()
