"""Files from seeds, whole and broken, of every format: each is a picture or a UserError."""

import io
import random
import struct
import zlib
from functools import cache
from pathlib import Path

import imagecodecs
import numpy as np
import pytest
import seeded
import tifffile
from PIL import Image, ImageCms, PngImagePlugin

from styletransfer.formats import decode, stored
from styletransfer.pictures.images import read

PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
EXTREMES = (0, 1, 2**7, 2**8 - 1, 2**15, 2**16 - 1, 2**24, 2**31 - 1, 2**31, 2**32 - 1)
MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK")


def exif():
    """Return EXIF with an orientation, chromaticities, an interoperability index and sides."""
    tags = Image.Exif()
    tags[0x112], tags[0x13F] = 6, (0.64, 0.33, 0.21, 0.71, 0.15, 0.06)
    tags.get_ifd(0x8769).update({0xA001: 65535, 0xA002: 24, 0xA003: 16, 0xA005: {1: "R98"}})
    return tags.tobytes()


def saved(kind, image, **options):
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def tiff(samples, pages=1, **options):
    buffer = io.BytesIO()
    writing = {name: options.pop(name) for name in ("bigtiff", "byteorder") if name in options}
    with tifffile.TiffWriter(buffer, **writing) as file:
        for _ in range(pages):
            file.write(samples, **{"metadata": None, "photometric": "rgb"} | options)
    return buffer.getvalue()


def pillow_files():
    """Yield files of the formats that Pillow writes, in their modes, with metadata and frames."""
    noise = np.random.default_rng(0).integers(0, 256, (16, 24, 3)).astype(np.uint8)
    rgb = Image.fromarray(noise)
    text = PngImagePlugin.PngInfo()
    text.add_text("Comment", "words " * 20, zip=True)
    text.add_itxt("XML:com.adobe.xmp", "<x:xmpmeta tiff:Orientation='6'/>")
    text.add(b"cICP", bytes((9, 16, 0, 1)))
    texts = {"PNG": {"pnginfo": text}, "GIF": {"comment": b"words " * 100}}
    metadata = {"exif": exif(), "icc_profile": PROFILE, "xmp": b"<x:xmpmeta/>"}
    frames = {"save_all": True, "append_images": [rgb.rotate(180)] * 2}
    for kind, modes in (
        ("PNG", MODES[:6]),
        ("JPEG", ("L", "RGB", "CMYK")),
        ("WEBP", ("RGB", "RGBA")),
        ("BMP", ("1", "L", "P", "RGB", "RGBA")),
        ("GIF", ("L", "P", "RGBA")),
        ("TIFF", MODES),
        ("AVIF", ("RGB", "RGBA")),
    ):
        for mode in modes:
            yield saved(kind, rgb.convert(mode), **(metadata if mode in ("L", "RGB") else {}))
        yield saved(kind, rgb, **metadata, **texts.get(kind, {}))
        if kind not in ("JPEG", "BMP"):
            yield saved(kind, rgb, **frames)
    yield saved("JPEG", rgb, progressive=True)
    yield saved("MPO", rgb, **frames)
    yield saved("WEBP", rgb, lossless=True)
    for packing in ("tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg", "zstd", "lzma"):
        yield saved("TIFF", rgb, compression=packing)
    for packing in ("group3", "group4"):
        yield saved("TIFF", rgb.convert("1"), compression=packing)


def deep_files():
    """Yield files of 10 to 32 bits, of tiles, SubIFDs, and of several pictures."""
    deep = np.random.default_rng(0).integers(0, 2**16, (16, 24, 3)).astype(np.uint16)
    for channels in (1, 3):
        yield imagecodecs.png_encode(deep[..., :channels].squeeze().copy())
    yield imagecodecs.avif_encode(deep >> 6, bitspersample=10, primaries=9, transfer=16)
    yield tiff(deep, iccprofile=PROFILE, compression="lzw", predictor=True)
    yield tiff(deep.transpose(2, 0, 1).copy(), planarconfig="separate")
    yield tiff((deep / 65535).astype(np.float32), tile=(16, 16), compression="zlib")
    yield tiff(deep[..., 0].copy(), photometric="miniswhite", bigtiff=True, byteorder=">")
    buffer = io.BytesIO()
    with tifffile.TiffWriter(buffer) as file:
        file.write(deep[:8, :8], subifds=2, photometric="rgb", subfiletype=1)
        for _ in range(3):
            file.write(deep, photometric="rgb")
    yield buffer.getvalue()
    heif = pytest.importorskip("pillow_heif")
    image = heif.from_bytes("RGB;16", (24, 16), deep.tobytes())
    buffer = io.BytesIO()
    image.save(buffer, quality=50, exif=exif(), color_primaries=9, transfer_characteristics=18)
    yield buffer.getvalue()
    several = heif.from_pillow(Image.new("RGB", (24, 16), "teal"))
    several.add_from_pillow(Image.new("RGBA", (32, 32), "red"))
    buffer = io.BytesIO()
    several.save(buffer, quality=50)
    yield buffer.getvalue()


@cache
def whole_files():
    return [*pillow_files(), *deep_files()]


def chunk(name, content=b""):
    return (
        struct.pack(">I", len(content))
        + name
        + content
        + struct.pack(">I", zlib.crc32(name + content))
    )


def box(name, content=b""):
    return struct.pack(">I", 8 + len(content)) + name + content


def tall_png():
    rows = zlib.compressobj()
    content = b"".join(rows.compress(bytes(2**20)) for _ in range(256)) + rows.flush()
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 2**27, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", content) + chunk(b"IEND")


def png_of_chunks(name, content, count):
    png = saved("PNG", Image.new("L", (24, 16)))
    return png[:33] + chunk(name, content) * count + png[33:]


def png_of_a_long_chunk(length):
    """Return a PNG of 16 bits whose samples are in a chunk that states a length."""
    png = imagecodecs.png_encode(np.zeros((16, 24, 3), np.uint16))
    at = png.index(b"IDAT") - 4
    return png[:at] + struct.pack(">I", length) + png[at + 4 :]


def jpeg_of_scans(side, count):
    """Return a progressive JPEG whose last scan is repeated."""
    jpeg = saved("JPEG", Image.new("RGB", (side, side)), progressive=True)
    last = jpeg[jpeg.rindex(b"\xff\xda") : -2]
    return jpeg[:-2] + last * count + jpeg[-2:]


def tiff_of_subifds(count):
    """Return a TIFF whose SubIFDs are all at one offset."""
    tags = [(65000, "I", count, [8] * count, True)]  # tifffile does not write the tag 330
    written = tiff(np.zeros((16, 24, 3), np.uint8), extratags=tags)
    other, subifds = (struct.pack("<HHI", tag, 4, count) for tag in (65000, 330))
    return written.replace(other, subifds)


def jpeg_of_segments(content, count):
    jpeg = saved("JPEG", Image.new("L", (24, 16)))
    return jpeg[:20] + content * count + jpeg[20:]


def avif_of_boxes(count):
    """Return an AVIF whose properties are `count` empty boxes."""
    avif = saved("AVIF", Image.new("L", (24, 16)))
    start = avif.index(b"meta") - 4
    end = start + int.from_bytes(avif[start : start + 4])
    meta = avif[start + 8 : end] + box(b"free") * count
    return avif[:start] + box(b"meta", meta) + avif[end:]


def heif_of_items(count):
    """Return a HEIF that lists `count` items without data besides its picture."""
    buffer = io.BytesIO()
    pytest.importorskip("pillow_heif").from_pillow(Image.new("RGB", (24, 16))).save(buffer)
    heif = buffer.getvalue()
    items = b"".join(
        box(b"infe", struct.pack(">IHH4sB", 2 << 24, number % 2**16, 0, b"hvc1", 0))
        for number in range(10, count + 10)
    )
    at = heif.index(b"iinf") - 4
    end, start = at + int.from_bytes(heif[at : at + 4]), heif.index(b"meta") - 4
    listed = box(b"iinf", struct.pack(">II", 1 << 24, count + 1) + heif[at + 14 : end] + items)
    meta = heif[start + 8 : at] + listed + heif[end : start + int.from_bytes(heif[start:][:4])]
    return heif[:start] + box(b"meta", meta)


def webp_of_frames(count):
    image = Image.new("RGB", (2, 2))
    webp = saved("WEBP", image, save_all=True, append_images=[Image.new("RGB", (2, 2), "red")])
    body = webp[8:] + webp[webp.rindex(b"ANMF") :] * count
    return b"RIFF" + struct.pack("<I", len(body)) + body


def bmp_of_runs(runs, width=2**20, height=4):
    """Return a BMP of 8 bits whose pixels are packed as `runs`, two bytes or four each."""
    header = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 8, 1, len(runs), 0, 0, 2, 0)
    return b"BM" + struct.pack("<IHHI", 62 + len(runs), 0, 0, 62) + header + bytes(8) + runs


# Files whose headers state much, or which hold long lists.
LONG_FILES = (
    tall_png,
    lambda: png_of_chunks(b"iCCP", b"a\0\0" + zlib.compress(bytes(2**20)), 8000),
    lambda: png_of_chunks(b"zTXt", b"a\0\0" + zlib.compress(bytes(2**20)), 8000),
    lambda: png_of_chunks(b"prVt", b"", 200_000),
    lambda: png_of_a_long_chunk(2**31 - 1),
    lambda: jpeg_of_scans(2000, 3000),
    lambda: jpeg_of_segments(b"\xff\xe1\0\x0eExif\0\0II*\0\0\0", 500_000),
    lambda: jpeg_of_segments(b"\xff", 20_000_000),
    lambda: tiff_of_subifds(100_000),
    lambda: avif_of_boxes(1_000_000),
    lambda: heif_of_items(900),
    lambda: heif_of_items(500_000),
    lambda: webp_of_frames(1_000_000),
    lambda: bmp_of_runs(b"\0\2\xff\xff" * 100_000),  # each run leaves out 255 columns and rows
    lambda: bmp_of_runs(b"\0\2\0\0" * 4_000_000),  # runs that change nothing
)


def changed(data, dice):
    """Return a file with one change: cut, flipped bits, a number, or a part doubled or left out."""
    first = dice.randrange(min(len(data), dice.choice((32, 256, len(data)))) + 1)
    end = min(len(data), first + dice.choice((1, 4, 12, 100, len(data))))
    number = struct.pack(dice.choice("<>") + "I", dice.choice((*EXTREMES, len(data))))
    number = number[-dice.choice((1, 2, 4)) :]
    flipped = bytes(byte ^ 1 << dice.randrange(8) for byte in data[first : first + 3])
    return dice.choice(
        (
            data[:first] + flipped + data[first + len(flipped) :],
            data[:first] + number + data[first + len(number) :],
            data[:first] + number + data[first + len(number) :],
            data[:first]
            + data[first:end] * dice.choice((2, 3, 20_000 // (end - first + 1)))
            + data[end:],
            data[:first] + data[end:],
            data[:first],
            data + data[first:end],
        )
    )


def with_checksums(png):
    """Return a PNG whose chunks have right checksums, up to a chunk of a wrong length."""
    at = 8
    while at + 12 <= len(png):
        end = at + 8 + int.from_bytes(png[at : at + 4])
        if end + 4 > len(png):
            break
        png = png[:end] + struct.pack(">I", zlib.crc32(png[at + 4 : end])) + png[end + 4 :]
        at = end + 4
    return png


def make(seed):
    """Write a file of a seed: one of LONG_FILES, or a small one, of which a third is whole."""
    path = Path("a.picture")
    if seed < len(LONG_FILES):
        path.write_bytes(LONG_FILES[seed]())
        return path
    dice = random.Random(seed)
    data = dice.choice(whole_files())
    for _ in range(dice.choice((0, 0, 1, 1, 2, 4))):
        data = changed(data, dice)
    if data[:4] == b"\x89PNG" and dice.random() < 0.7:
        data = with_checksums(data)
    path.write_bytes(data)
    return path


def use(path):
    """Read the picture, under a lower limit of pixels, since a header may state many more."""
    stored.MAX_PIXELS = 2**22
    rgb = read(path).rgb
    assert rgb.ndim == 4
    assert 0.0 <= rgb.min() <= rgb.max() <= 1.0
    decode.xmp_packet(path)


@pytest.mark.slow  # a new process
def test_broken_files_are_read_or_refused_in_one_line(pytestconfig):
    outcomes = seeded.check(__file__, 5 * pytestconfig.option.seeds)
    assert min(outcomes["success"], outcomes["UserError"]) > 0.2 * outcomes.total()
