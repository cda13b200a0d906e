"""Pictures that Pillow refuses though browsers show them: metadata and ends warn, pixels decide."""

import io
import struct
import zlib

import imagecodecs
import numpy as np
import pytest
import tifffile
import torch
from PIL import Image, PngImagePlugin

from styletransfer.errors import UserError
from styletransfer.pictures.color import to_srgb
from styletransfer.pictures.images import read

LINEAR = imagecodecs.cms_profile(
    "rgb", gamma=1.0, whitepoint=[0.3127, 0.3290], primaries=[0.64, 0.33, 0.30, 0.60, 0.15, 0.06]
)
ORIENTATION = 274
SAMPLES = np.random.default_rng(0).integers(0, 256, (16, 24, 3)).astype(np.uint8)


def saved(kind, **options):
    buffer = io.BytesIO()
    Image.fromarray(SAMPLES).save(buffer, kind, **options)
    return buffer.getvalue()


def chunk(name, content):
    checksum = zlib.crc32(name + content)
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", checksum)


def with_chunk(name, content, png=None):
    png = png or saved("PNG")
    return png[:33] + chunk(name, content) + png[33:]


def with_wrong_checksum(name, content, png=None):
    png = with_chunk(name, content, png)
    end = 33 + 8 + len(content)
    return png[:end] + bytes([png[end] ^ 1]) + png[end + 1 :]


def shown(tmp_path, content):
    """Return the samples of a file of this content, (H, W, 3) in [0, 1]."""
    (tmp_path / "a.picture").write_bytes(content)
    return read(tmp_path / "a.picture").rgb[0].permute(1, 2, 0).numpy()


def oriented(number):
    tags = Image.Exif()
    tags[ORIENTATION] = number
    return tags.tobytes()


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize(
    "name",
    [b"pHYs", b"tEXt", b"zTXt", b"iTXt", b"tIME", b"iCCP", b"gAMA", b"cHRM", b"eXIf", b"prVt"],
)
def test_a_wrong_checksum_of_metadata_is_told(tmp_path, caplog, name, deep):
    samples = SAMPLES.astype(np.uint16) * 257 if deep else SAMPLES
    png = imagecodecs.png_encode(samples)
    rgb = shown(tmp_path, with_wrong_checksum(name, b"a\0\0\1\2\3\4\5\6", png))
    assert np.array_equal(np.round(rgb * 255), SAMPLES)
    (record,) = caplog.records
    assert record.getMessage().endswith(f"a.picture: left out damaged metadata: {name.decode()}")


@pytest.mark.parametrize("name", ["tEXt", "zTXt", "iTXt"])
def test_texts_of_any_length_cost_no_picture(tmp_path, caplog, name):
    text, noise = PngImagePlugin.PngInfo(), np.random.default_rng(1).bytes(2**21).hex()
    if name == "iTXt":
        text.add_itxt("Comment", noise, zip=True)
    else:
        text.add_text("Comment", noise, zip=name == "zTXt")
    rgb = shown(tmp_path, saved("PNG", pnginfo=text, exif=oriented(6)))
    assert np.array_equal(np.round(rgb * 255), np.rot90(SAMPLES, -1))
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == (name != "tEXt")  # Pillow reads long texts that are not compressed
    assert all(f"left out damaged metadata: {name}" in line for line in told)


@pytest.mark.parametrize("copies", [1, 3])
def test_a_profile_of_two_megabytes_is_used(tmp_path, caplog, copies):
    profile = LINEAR + bytes(2**21)
    profile = struct.pack(">I", len(profile)) + profile[4:]
    png = saved("PNG")
    for _ in range(copies):
        png = with_chunk(b"iCCP", b"linear\0\0" + zlib.compress(profile), png)
    expected = to_srgb(torch.from_numpy(SAMPLES / 255)).numpy()
    assert np.abs(shown(tmp_path, png) - expected).max() < 1 / 255
    assert not caplog.records


@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("ending", [b"", b"\xff", b"garbage" * 50, bytes(400)], ids=len)
def test_a_jpeg_without_its_end_is_whole(tmp_path, caplog, progressive, ending):
    jpeg = saved("JPEG", progressive=progressive, exif=oriented(6))
    whole = shown(tmp_path, jpeg)
    assert not caplog.records
    assert np.array_equal(shown(tmp_path, jpeg[:-2] + ending), whole)
    (record,) = caplog.records
    assert record.getMessage().endswith("a.picture has no end marker; it may have been cut off")


@pytest.mark.parametrize("progressive", [False, True])
def test_a_jpeg_that_misses_samples_is_refused(tmp_path, progressive):
    jpeg = saved("JPEG", progressive=progressive)
    for cut in (20, 100, 400):
        with pytest.raises(UserError, match="damaged"):
            shown(tmp_path, jpeg[:-cut])


@pytest.mark.parametrize(("kind", "turned"), [(b"EXIF", False), (b"XMP ", True)])
@pytest.mark.parametrize("way", ["cut", "length"])
def test_a_webp_with_damaged_metadata_is_told(tmp_path, caplog, kind, turned, way):
    options = {"exif": oriented(6), "xmp": b"<x:xmpmeta/>", "icc_profile": LINEAR}
    webp = saved("WEBP", lossless=True, **options)
    at = webp.index(kind)
    broken = webp[: at + 10] if way == "cut" else webp[: at + 4] + b"\xff" * 3 + webp[at + 7 :]
    whole = shown(tmp_path, webp)
    expected = whole if turned else np.rot90(whole)
    assert np.array_equal(shown(tmp_path, broken), expected)
    (record,) = caplog.records
    assert "left out damaged metadata: " in record.getMessage()
    assert kind.decode().strip() in record.getMessage()


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF", "BMP", "GIF", "AVIF"])
def test_bytes_behind_a_picture_do_not_matter(tmp_path, caplog, kind):
    content = saved(kind)
    whole = shown(tmp_path, content)
    assert np.array_equal(shown(tmp_path, content + b"a film, perhaps" * 99), whole)
    assert not caplog.records


def test_a_jpeg_of_too_many_scans_is_refused(tmp_path):
    buffer = io.BytesIO()
    Image.new("L", (1000, 1000)).save(buffer, "JPEG", progressive=True)
    jpeg = buffer.getvalue()
    last = jpeg[jpeg.rindex(b"\xff\xda") : -2]
    assert shown(tmp_path, jpeg[:-2] + last * 50 + jpeg[-2:]).shape == (1000, 1000, 3)
    with pytest.raises(UserError, match="has 2148 scans or more of 1,000,000 pixels"):
        shown(tmp_path, jpeg[:-2] + last * 3000 + jpeg[-2:])


@pytest.mark.parametrize("more", [b"\xff\xfe\0\3a" * 5000, b"\xff" * 2**21], ids=["many", "fill"])
def test_a_jpeg_of_endless_metadata_is_refused(tmp_path, more):
    jpeg = saved("JPEG")
    with pytest.raises(UserError, match="has more than 4096 segments; save it anew"):
        shown(tmp_path, jpeg[:20] + more + jpeg[20:])


@pytest.mark.parametrize("size", [(1, 2**20 + 1), (2**20 + 1, 1)])
def test_a_side_of_more_than_a_million_is_refused(tmp_path, size):
    buffer = io.BytesIO()
    Image.new("1", size).save(buffer, "PNG")
    with pytest.raises(UserError, match="a side above 1,048,576; cut it into parts"):
        shown(tmp_path, buffer.getvalue())


def test_subifds_at_one_place_are_read_once(tmp_path, caplog, monkeypatch):
    pages, real = [], tifffile.TiffPage.__init__

    def counted(page, *given, **named):
        pages.append(page)
        real(page, *given, **named)

    monkeypatch.setattr(tifffile.TiffPage, "__init__", counted)
    for places, most in (([8] * 5000, 4), (range(8, 5008), 40)):
        pages.clear()
        buffer, place = io.BytesIO(), (4, len(places))  # tifffile writes no such tag
        tags = [(65000, "I", len(places), [*places], True)]
        tifffile.imwrite(buffer, SAMPLES, photometric="rgb", metadata=None, extratags=tags)
        subifds, other = (struct.pack("<HHI", tag, *place) for tag in (330, 65000))
        rgb = shown(tmp_path, buffer.getvalue().replace(other, subifds))
        assert np.array_equal(np.round(rgb * 255), SAMPLES)
        assert len(pages) < most
    (record,) = caplog.records
    assert record.getMessage().endswith("has 5,000 SubIFDs; only the first 32 are looked at")
