"""Encodes sRGB tensors as the bytes of picture files."""

import html
import io
import struct
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import tifffile
import torch
from numpy.typing import NDArray
from PIL import Image, ImageCms
from PIL.PngImagePlugin import PngInfo, putchunk
from torch import Tensor

# IPTC's term for media that were changed by a trained network.
SOURCE = "http://cv.iptc.org/newscodes/digitalsourcetype/compositeWithTrainedAlgorithmicMedia"
_PACKET = """<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/">
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about=""
 xmlns:Iptc4xmpExt="http://iptc.org/std/Iptc4xmpExt/2008-02-29/"
 xmlns:styletransfer="urn:x-styletransfer#" Iptc4xmpExt:DigitalSourceType="{}"
 styletransfer:recipe="{}"/></rdf:RDF></x:xmpmeta>
<?xpacket end="r"?>"""
_ROWS = 64  # rows converted to samples at once, and rows of a strip in a TIFF file


@cache
def srgb_profile() -> bytes:
    """Return an sRGB ICC profile: the same bytes in every run."""
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    profile[24:36] = struct.pack(">6H", 2000, 1, 1, 0, 0, 0)  # the header's creation date
    return bytes(profile)


def xmp_of(recipe: str) -> bytes:
    """Return an XMP packet, metadata for any picture format, that holds a text; b"" for ""."""
    # Not quote=True, which writes ' as &#x27;: the library Exiv2 would read that as a space.
    text = html.escape(recipe, quote=False).replace('"', "&quot;")
    return _PACKET.format(SOURCE, text).encode() if recipe else b""


def encode(layers: list[Tensor], depth: int, extension: str, xmp: bytes) -> bytes:
    """Return the bytes of a .png, .webp, .jpg or .jpeg file of rgb (1, 3, H, W) and perhaps alpha.

    JPEG has no alpha, so the picture is laid on white. `xmp` is an XMP packet, or empty. (OSError,
    ValueError: the format cannot hold so many pixels.)
    """
    on_white = extension in (".jpg", ".jpeg")
    samples = np.concatenate(list(_strips(layers, depth, on_white=on_white)))
    profile = srgb_profile()
    buffer, text = io.BytesIO(), PngInfo()
    if xmp:
        text.add_itxt("XML:com.adobe.xmp", xmp.decode())
    if depth == 16:  # Pillow cannot write 16-bit RGB
        png = memoryview(imagecodecs.png_encode(samples))
        text.add(b"iCCP", b"sRGB\0\0" + zlib.compress(profile))
        buffer.write(png[:33])  # the signature and the chunk IHDR
        for kind, data, _ in text.chunks:
            putchunk(buffer, kind, data)
        buffer.write(png[33:])
        return buffer.getvalue()
    options: dict[str, dict[str, Any]] = {
        ".png": {"format": "PNG", "pnginfo": text},
        ".webp": {"format": "WEBP", "lossless": True, "exact": True, "xmp": xmp},
    }
    jpeg = {"format": "JPEG", "quality": 95, "subsampling": 0, "xmp": xmp}
    Image.fromarray(samples).save(buffer, icc_profile=profile, **options.get(extension, jpeg))
    return buffer.getvalue()


def write_tiff(path: Path, layers: list[Tensor], depth: int, xmp: bytes) -> None:
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
        extratags=[(700, tifffile.DATATYPE.BYTE, len(xmp), xmp, True)] if xmp else (),
    )


def _strips(layers: list[Tensor], depth: int, *, on_white: bool = False) -> Iterator[NDArray[Any]]:
    """Yield a picture from top to bottom as (rows, W, 3 or 4) integers of `depth` bits."""
    for top in range(0, layers[0].shape[2], _ROWS):
        rows = [layer[0, :, top : top + _ROWS].detach() for layer in layers]
        strip = torch.cat([x.to("cpu", torch.float32) for x in rows]).clamp(0.0, 1.0)
        if on_white and len(layers) == 2:
            strip = 1.0 + strip[3:] * (strip[:3] - 1.0)
        samples = (strip * (2**depth - 1)).round().permute(1, 2, 0).numpy()
        yield np.ascontiguousarray(samples, np.uint8 if depth == 8 else np.uint16)
