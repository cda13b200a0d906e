"""Writes TIFF files by tifffile, with 8 or 16 bits per sample."""

from pathlib import Path

import numpy as np
import tifffile
from torch import Tensor

from styletransfer.pictures.images import ROWS, strips
from styletransfer.pictures.profiles import srgb_profile


def write_tiff(path: Path, layers: list[Tensor], depth: int, xmp: bytes) -> None:
    """Write a TIFF file strip by strip, so that a large picture is in memory only once."""
    height, width = layers[0].shape[2:]
    channels = sum(layer.shape[1] for layer in layers)
    tifffile.imwrite(
        path,
        strips(layers, depth),
        shape=(height, width, channels),
        dtype=np.uint8 if depth == 8 else np.uint16,
        rowsperstrip=min(ROWS, height),
        photometric="rgb",
        extrasamples=["unassalpha"] if channels == 4 else None,
        iccprofile=srgb_profile(),
        software=False,
        metadata=None,
        extratags=[(700, tifffile.DATATYPE.BYTE, len(xmp), xmp, True)] if xmp else (),
    )
