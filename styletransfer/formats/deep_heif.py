"""Reads AVIF and HEIF files of 10 or 12 bits per sample; Pillow reads only the upper 8 bits."""

from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from styletransfer.formats.heif_boxes import bits_of

Samples = NDArray[np.uint16]


def read(path: Path, kind: str) -> Samples | None:
    """Return the samples (H, W, 1 to 4), scaled to 0 to 65535, of a file with more than 8 bits.

    `kind` is "AVIF" or "HEIF". None means that the file has 8 bits, or, for AVIF, that imagecodecs
    (of the extra [tiff]) is missing or cannot read the file.
    """
    with path.open("rb") as file:
        bits = bits_of(file)
    if bits <= 8:
        return None
    if kind == "HEIF":
        picture = import_module("pillow_heif").open_heif(path, convert_hdr_to_8bit=False)
        # pillow_heif returns a sample in the upper `bits` bits of a 16-bit integer.
        return _spread(np.atleast_3d(np.asarray(picture)) >> (16 - bits), bits)
    with suppress(Exception):  # if imagecodecs fails, Pillow reads the file
        decoded = import_module("imagecodecs").avif_decode(path.read_bytes(), index=0)
        return _spread(np.atleast_3d(decoded), bits)
    return None


def _spread(samples: NDArray[Any], bits: int) -> Samples | None:
    """Scale samples from 0 to 2 ** bits - 1 to 0 to 65535; return None for samples of 8 bits."""
    if samples.dtype != np.uint16:
        return None
    table = np.round(np.linspace(0.0, 65535.0, 2**bits)).astype(np.uint16)
    spread: Samples = table[samples]
    return spread
