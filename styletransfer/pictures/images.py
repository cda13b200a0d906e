"""Reads and writes picture files as tensors (1, 3, H, W), float32, sRGB in [0, 1]."""

import html
import io
import math
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from torch import Tensor
from torch.nn.functional import avg_pool2d, conv2d, interpolate, pad

from styletransfer import formats
from styletransfer.errors import UserError
from styletransfer.formats import deep_png
from styletransfer.formats.folders import film_and_place
from styletransfer.formats.profiles import srgb_profile
from styletransfer.settings.registry import FrameReader, offered
from styletransfer.system.files import atomic, write_atomic
from styletransfer.system.outputs import check_folder

# IPTC's term for media that a trained network has changed; `xmp_of` writes it into the metadata.
SOURCE = "http://cv.iptc.org/newscodes/digitalsourcetype/compositeWithTrainedAlgorithmicMedia"
_PACKET = """<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/">
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about=""
 xmlns:Iptc4xmpExt="http://iptc.org/std/Iptc4xmpExt/2008-02-29/"
 xmlns:styletransfer="urn:x-styletransfer#" Iptc4xmpExt:DigitalSourceType="{}"
 styletransfer:recipe="{}"/></rdf:RDF></x:xmpmeta>
<?xpacket end="r"?>"""
ROWS = 64  # rows converted to integers at once; a strip of a TIFF file has as many rows
# Extension of a file that can be written -> its default number of bits per sample.
BIT_DEPTHS = {".png": 8, ".jpg": 8, ".jpeg": 8, ".webp": 8, ".tif": 16, ".tiff": 16}
# Extension -> longest side in pixels that its encoder takes. The other extensions have no limit
# here.
LONGEST = {".jpg": 65500, ".jpeg": 65500, ".webp": 16383}

# Largest difference between the channels of a grey picture's pixel, in [0, 1]. JPEG compression and
# colour profiles cause smaller differences.
GREY = 2.5 / 255
# CUDA's antialiased resampling refuses large reductions: from 6000 pixels to 192 it works, but not
# to 128 (torch 2.11, H100). Reductions by more than this factor are computed on the CPU.
MOST_ON_GPU = 24


@dataclass(frozen=True)
class Picture:
    """A `Picture` is an image in memory: its colours, its transparency, and its name."""

    rgb: Tensor  # (1, 3, H, W), float32, sRGB in [0, 1], not premultiplied
    alpha: Tensor | None = None  # (1, 1, H, W), float32, 0 transparent to 1 opaque
    name: str = "the picture"  # for error messages: the file's path if the picture has a file

    @classmethod
    def of(cls, read: formats.Read, name: str) -> Self:
        """Make a picture of the arrays that `formats.read` or `read_image` has returned."""
        rgb, alpha = read
        opacity = None if alpha is None else torch.from_numpy(alpha)[None]
        return cls(torch.from_numpy(rgb)[None], opacity, name)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width in pixels."""
        return self.rgb.shape[2], self.rgb.shape[3]


def read(path: str | os.PathLike[str]) -> Picture:
    """Read a JPEG, PNG, WebP, TIFF, BMP, GIF, AVIF or HEIC file.

    If a file has several frames or pages, the first is read; of a TIFF page and its SubIFDs, the
    largest. 8 to 16 bits per sample are kept; floats in a TIFF mean 0 for black and 1 for white, in
    the stated colour space, and are clipped; grey, palette and CMYK become RGB; an EXIF orientation
    is applied. Colours are converted to sRGB by what the file states: an ICC profile,
    CICP or nclx, EXIF, or chromaticities and gamma. HDR is tone-mapped, see
    `formats.color_spaces`. A statement that cannot be used is ignored with a warning. If a file
    states nothing, its colours are sRGB. HEIC needs pillow-heif; without imagecodecs, AVIF keeps
    only 8 bits. Metadata that is damaged or too large, and a missing end marker of a JPEG, get a
    warning. (UserError if the file cannot be read, is no picture, is damaged, or has more than 134
    million pixels.)

    A path such as film.mp4:120 or film.mp4:4.8s names a frame of a film, see `Film.frame`.
    """
    film, place = film_and_place(path)
    if place and (readers := offered(FrameReader)):
        return Picture(readers[0].read(film, place), name=str(path))
    return Picture.of(formats.read(Path(path)), str(path))


def write(
    path: str | os.PathLike[str],
    rgb: Tensor,
    alpha: Tensor | None = None,
    *,
    bit_depth: int | None = None,
    xmp: bytes = b"",
) -> None:
    """Write a picture in the format that the extension names, with an sRGB ICC profile.

    JPEG has quality 95 without chroma subsampling; WebP is lossless, because its lossy mode always
    subsamples chroma. Alpha is kept, except in JPEG, where the picture is laid on white. Equal
    pictures give equal bytes. The file appears under its name only when it is complete.

    Args:
        path: ends in .png, .jpg, .jpeg, .webp, .tif or .tiff; missing folders are created.
        rgb: (1, 3, H, W), any floating dtype and device; clamped to [0, 1].
        alpha: (1, 1, H, W), any floating dtype and device; clamped to [0, 1].
        bit_depth: 8 bits per sample, or 16 in PNG and TIFF; by default 16 for TIFF and 8 for PNG.
        xmp: metadata, an XMP packet of at most 65502 bytes; empty for none.

    Raises:
        UserError: the extension is unknown, the picture is too large for the format or holds NaN
            or infinity, or the file cannot be written.
    """
    extension = _extension(path, size_of(rgb))
    depth = bit_depth or BIT_DEPTHS[extension]
    layers = [rgb] if alpha is None else [rgb, alpha]
    # `aminmax` finds NaN and infinity without a copy of the layer; isfinite() would make a copy.
    if not all(math.isfinite(extreme) for layer in layers for extreme in layer.detach().aminmax()):
        raise UserError(f"cannot write {path}: the picture holds NaN or infinity")
    if extension in (".tif", ".tiff"):
        with atomic(path) as temporary:
            _write_tiff(temporary, layers, depth, xmp)
        return
    write_atomic(path, _encoded(layers, depth, extension, xmp))


def _encoded(layers: list[Tensor], depth: int, extension: str, xmp: bytes) -> bytes:
    """Return the bytes of a PNG, WebP or JPEG file."""
    is_jpeg = extension in (".jpg", ".jpeg")  # JPEG has no alpha
    samples = np.concatenate(list(strips(layers, depth, opaque=is_jpeg)))
    profile = srgb_profile()
    buffer, text = io.BytesIO(), PngInfo()
    if xmp:
        text.add_itxt("XML:com.adobe.xmp", xmp.decode())
    if depth == 16:
        text.add(b"iCCP", b"sRGB\0\0" + zlib.compress(profile))
        return deep_png.encoded(samples, [(name, content) for name, content, _ in text.chunks])
    options: dict[str, dict[str, Any]] = {
        ".png": {"format": "PNG", "pnginfo": text},
        ".webp": {"format": "WEBP", "lossless": True, "exact": True, "xmp": xmp},
    }
    jpeg = {"format": "JPEG", "quality": 95, "subsampling": 0, "xmp": xmp}
    Image.fromarray(samples).save(buffer, icc_profile=profile, **options.get(extension, jpeg))
    return buffer.getvalue()


def _write_tiff(path: Path, layers: list[Tensor], depth: int, xmp: bytes) -> None:
    """Write a TIFF file strip by strip, so that a large picture is in memory only once."""
    import tifffile

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


def strips(layers: list[Tensor], depth: int, *, opaque: bool = False) -> Iterator[NDArray[Any]]:
    """Yield strips (rows, W, 3 or 4) of at most ROWS rows, as integers with `depth` bits.

    With `opaque`, the picture is laid on white and its strips have no alpha.
    """
    for top in range(0, layers[0].shape[2], ROWS):
        rows = [layer[0, :, top : top + ROWS].detach() for layer in layers]
        strip = torch.cat([x.to("cpu", torch.float32) for x in rows]).clamp(0.0, 1.0)
        strip = on_white(strip[:3], strip[3:]) if opaque and len(layers) == 2 else strip
        samples = (strip * (2**depth - 1)).round().permute(1, 2, 0).numpy()
        yield np.ascontiguousarray(samples, np.uint8 if depth == 8 else np.uint16)


def on_white(rgb: Tensor, alpha: Tensor | None) -> Tensor:
    """Return colours (..., 3, H, W) on white; `alpha` is (..., 1, H, W), or None for opaque."""
    return rgb if alpha is None else (1.0 + alpha * (rgb - 1.0)).clamp(0.0, 1.0)


def xmp_of(recipe: str) -> bytes:
    """Return an XMP packet (a picture's metadata) that holds the text `recipe`; b"" for ""."""
    # quote=True would write ' as &#x27;, which the library Exiv2 reads as a space.
    text = html.escape(recipe, quote=False).replace('"', "&quot;")
    return _PACKET.format(SOURCE, text).encode() if recipe else b""


def check_writable(path: str | os.PathLike[str], size: tuple[int, int] | None = None) -> None:
    """Raise UserError if `write` could not write a picture of (height, width) `size` to `path`."""
    _extension(path, size)
    check_folder(path)


def _extension(path: str | os.PathLike[str], size: tuple[int, int] | None = None) -> str:
    """Return a path's extension in lower case.

    (UserError if it is not in BIT_DEPTHS, or if its format cannot hold (height, width) `size`.)
    """
    extension = Path(path).suffix.lower()
    if extension not in BIT_DEPTHS:
        known = ", ".join(BIT_DEPTHS)
        raise UserError(f"cannot write {path}: unknown extension '{extension}'; use {known}")
    if size and max(size) > (longest := LONGEST.get(extension, math.inf)):
        pixels = f"{size[1]} x {size[0]} pixels, {longest} at most"
        raise UserError(f"cannot write {path}: {extension} cannot hold {pixels}; use .png")
    return extension


def scaled_size(size: tuple[int, int], longer_side: int) -> tuple[int, int]:
    """Return (height, width) with the aspect ratio of `size` and `longer_side`, at least 1 x 1."""
    scale = longer_side / max(size)
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def long_enough(size: tuple[int, int], longer: int, shorter: int) -> int:
    """Return a longer side: `longer`, or more if the shorter side would be below `shorter`.

    `size` is the (height, width) of the picture, whose aspect ratio stays. All are in pixels.
    """
    return max(longer, round(shorter * max(size) / min(size)))


def resize(
    image: Tensor, size: tuple[int, int], mode: str = "bicubic", *, wraps: bool = False
) -> Tensor:
    """Resample (N, C, H, W) to height and width `size`: antialiased, clamped to [0, 1].

    The filter of "bilinear" has no negative weights, so no value is clamped: masks that sum to 1 at
    each pixel still do so after resizing. "bicubic" does not have this property. With `wraps`, the
    picture continues at the opposite edge. An image of this size is returned unchanged.
    """
    if image.shape[2:] == size:
        return image
    if image.device.type == "cuda" and max(image.shape[2:]) > MOST_ON_GPU * max(size):
        return resize(image.cpu(), size, mode, wraps=wraps).to(image.device)
    if wraps:
        height, width = size
        nine = resize(image.repeat(1, 1, 3, 3), (3 * height, 3 * width), mode)
        return nine[..., height : 2 * height, width : 2 * width].contiguous()
    return interpolate(image, size, mode=mode, antialias=True).clamp(0.0, 1.0)


def weights_for(weights: Tensor, image: Tensor) -> Tensor:
    """Resize weights (1, 1, h, w) to the size of an image, and give them its device and dtype."""
    return resize(weights.to(image), size_of(image), "bilinear")


def is_grey(images: Iterable[Tensor]) -> bool:
    """Return whether no pixel of these images (1, 3, H, W), in [0, 1], has a visible colour."""
    return all((image.amax(1) - image.amin(1)).max() <= GREY for image in images)


def blurred(image: Tensor, deviation: float, reach: int | None = None) -> Tensor:
    """Blur (1, C, H, W) by a Gaussian that ends after `reach` pixels; the border is repeated.

    `deviation` is in pixels. By default `reach` is 3 deviations plus 1, rounded down.
    """
    reach = int(3 * deviation + 1) if reach is None else reach
    offsets = torch.arange(-reach, reach + 1, dtype=image.dtype, device=image.device)
    kernel = torch.exp(-(offsets**2) / (2 * deviation**2))
    kernel = kernel / kernel.sum()
    planes = pad(image.transpose(0, 1), (reach,) * 4, mode="replicate")
    planes = conv2d(conv2d(planes, kernel.view(1, 1, 1, -1)), kernel.view(1, 1, -1, 1))
    return planes.transpose(0, 1)


def box_mean(values: Tensor, side: int) -> Tensor:
    """Return means of (1, C, H, W) over squares with an odd `side`; the border is repeated."""
    return avg_pool2d(pad(values, (side // 2,) * 4, mode="replicate"), side, 1)


def size_of(image: Tensor) -> tuple[int, int]:
    """Return the (height, width) of an image (N, C, height, width)."""
    return image.shape[2], image.shape[3]


def resize_picture(picture: Picture, longer_side: int) -> Picture:
    """Resize a picture to `longer_side` pixels; for transparent pixels, see `resampled`."""
    size = scaled_size(picture.size, longer_side)
    return picture if size == picture.size else resampled(picture, lambda x: resize(x, size))


def resampled(picture: Picture, resample: Callable[[Tensor], Tensor]) -> Picture:
    """Apply a linear function of images (1, C, H, W), such as a resize, to colours and alpha.

    Colours are weighted by alpha, so that the colours of transparent pixels do not bleed into
    visible ones. Fully transparent pixels become black.
    """
    if picture.alpha is None:
        return replace(picture, rgb=resample(picture.rgb))
    alpha = resample(picture.alpha)
    premultiplied = resample(picture.rgb * picture.alpha)
    visible = alpha.clamp_min(1e-3)  # a divisor must not be 0; a lower alpha is invisible
    return replace(picture, rgb=(premultiplied / visible).clamp(0.0, 1.0), alpha=alpha)


def luma(image: Tensor) -> Tensor:
    """Return the luma (B, 1, H, W) of an image (B, 3, H, W), with the weights of BT.601."""
    return (image * image.new_tensor((0.299, 0.587, 0.114)).view(1, 3, 1, 1)).sum(1, True)
