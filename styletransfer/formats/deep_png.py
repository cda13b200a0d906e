"""Reads and writes 16-bit PNG files; Pillow keeps all 16 bits only of grey pictures."""

import io
import struct
import zlib
from collections.abc import Iterable
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from PIL.PngImagePlugin import putchunk

Samples = NDArray[np.uint16]

# Number of channels -> code of the colour type in a PNG's header.
_COLOUR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}
_SUB = 1  # PNG's filter that subtracts from each byte the same byte of the pixel on the left


def read(file: BinaryIO) -> Samples:
    """Return the samples (H, W, C) of an open 16-bit PNG: grey, grey and alpha, RGB, or RGBA.

    If the file declares a colour to be transparent, the samples get an alpha channel.
    """
    with Image.open(file, formats=["PNG"]) as image:
        layout, key = str(image.tile[0].args), image.info.get("transparency")
        if layout == "I;16B":
            samples = np.array(image, dtype=np.uint16)[..., None]
        elif layout == "LA;16B":  # read as 8-bit RGBA, so that Pillow keeps all 4 bytes of a pixel
            samples = _unpacked(file, "RGBA").view(">u2").astype(np.uint16)
        else:  # Pillow reads one byte of each sample: the upper, or with the layout 16L the lower
            lower = _unpacked(file, layout.replace("16B", "16L"))
            samples = _unpacked(file, layout) * np.uint16(256) + lower
    if key is None:
        return samples
    visible = (samples != np.array(key)).any(axis=2, keepdims=True)
    return np.concatenate([samples, visible * np.uint16(65535)], axis=2)


def _unpacked(file: BinaryIO, layout: str) -> NDArray[np.uint8]:
    """Return the array (H, W, C) that Pillow decodes if it takes the pixels to have `layout`."""
    with Image.open(file, formats=["PNG"]) as image:
        image.tile = [tile._replace(args=layout) for tile in image.tile]
        return np.array(image)


def encoded(samples: Samples, chunks: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the bytes of a PNG file of samples (H, W, 1 to 4) and extra chunks (name, content)."""
    height, width, channels = samples.shape
    rows = samples.astype(">u2").view(np.uint8).reshape(height, -1)
    filtered = np.insert(rows, 0, _SUB, axis=1)
    filtered[:, 1 + 2 * channels :] -= rows[:, : -2 * channels]
    header = struct.pack(">IIBBBBB", width, height, 16, _COLOUR_TYPES[channels], 0, 0, 0)
    buffer = io.BytesIO()
    buffer.write(b"\x89PNG\r\n\x1a\n")
    for name, content in (
        (b"IHDR", header),
        *chunks,
        (b"IDAT", zlib.compress(filtered.tobytes())),
        (b"IEND", b""),
    ):
        putchunk(buffer, name, content)
    return buffer.getvalue()
