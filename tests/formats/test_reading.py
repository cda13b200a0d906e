"""Reading files of other programs: formats, depths, profiles, orientations, and bad files."""

import io
import os
import re
import struct
import sys
import zlib
from unittest.mock import Mock

import numpy as np
import pytest
import tifffile
import torch
from helpers import needs
from PIL import Image

from styletransfer.errors import UserError, pip_install
from styletransfer.formats import stored
from styletransfer.pictures.color import to_srgb
from styletransfer.pictures.images import read, write

imagecodecs = needs("tiff", "imagecodecs")
LINEAR = imagecodecs.cms_profile(
    "rgb", gamma=1.0, whitepoint=[0.3127, 0.3290], primaries=[0.64, 0.33, 0.30, 0.60, 0.15, 0.06]
)
LOSSLESS = {"lossless": True, "exact": True}
SAVING = {"a.jpg": {"quality": 95, "subsampling": 0}, "lzw.tif": {"compression": "tiff_lzw"}}
INKS = np.array([[[0, 0, 0, 0], [255, 0, 0, 0], [0, 255, 255, 0], [0, 0, 0, 255]]], dtype=np.uint8)
INKS = INKS.repeat(8, axis=0).repeat(8, axis=1)  # flat JPEG blocks


def noise(channels, bits=8, height=9, width=13):
    rng = np.random.default_rng(0)
    return rng.integers(0, 2**bits, (height, width, channels)).astype(f"uint{bits}")


def tensor(samples):
    """Return integer samples (H, W, C) as a tensor (1, C, H, W) in [0, 1]."""
    unit = samples.astype(np.float32) / np.iinfo(samples.dtype).max
    return torch.from_numpy(unit.transpose(2, 0, 1).copy())[None]


def tiff(samples, **options):
    """Return a TIFF of `samples` (height, width, channels), RGB unless the options differ."""
    buffer = io.BytesIO()
    tifffile.imwrite(buffer, samples, **({"photometric": "rgb", "metadata": None} | options))
    return buffer.getvalue()


def save(path, samples, mode=None, **options):
    """Write 8-bit samples with Pillow; return the path."""
    options |= LOSSLESS if path.suffix == ".webp" else {}
    image = Image.fromarray(samples.squeeze())
    (image.convert(mode) if mode else image).save(path, **options)
    return path


def with_chunk(png, name, data):
    """Return the bytes of a PNG file with a chunk inserted after the header."""
    chunk = name + data
    framed = struct.pack(">I", len(data)) + chunk + struct.pack(">I", zlib.crc32(chunk))
    return png[:33] + framed + png[33:]


def refused(path, message):
    """Check that reading raises a UserError of one line that names the file and the reason."""
    with pytest.raises(UserError, match=message) as caught:
        read(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_eight_bit_files_of_any_name_give_their_first_frame(tmp_path, caplog):
    save(tmp_path / "a.jpg", noise(3), format="BMP")
    assert torch.equal(read(tmp_path / "a.jpg").rgb, tensor(noise(3)))
    frames = [Image.new("RGB", (4, 3), colour) for colour in ("#ff0000", "#00ff00")]
    for file_format in ("GIF", "TIFF", "WEBP", "PNG"):
        options = {**(LOSSLESS if file_format == "WEBP" else {}), "append_images": frames[1:]}
        frames[0].save(tmp_path / "a.jpg", file_format, save_all=True, **options)
        caplog.clear()
        assert read(tmp_path / "a.jpg").rgb[0, :, 1, 1].tolist() == [1.0, 0.0, 0.0]
        told = "pages; only the first" if file_format == "TIFF" else "only its first frame"
        assert f"{told} is read" in caplog.text


@pytest.mark.parametrize("bits", [8, 16])
def test_every_kind_of_transparency_becomes_alpha(tmp_path, bits):
    png, tif = tmp_path / "a.png", tmp_path / "a.tif"
    for channels in (1, 2):
        samples = noise(channels, bits)
        png.write_bytes(imagecodecs.png_encode(samples.squeeze()))
        extra = {"extrasamples": [2], "planarconfig": "contig"} if channels == 2 else {}
        tif.write_bytes(tiff(samples.squeeze(), photometric="minisblack", **extra))
        for picture in map(read, (png, tif)):
            assert torch.equal(picture.rgb, tensor(samples[..., :1]).expand(1, 3, -1, -1))
            assert (picture.alpha is None) == (channels == 1)
            assert channels == 1 or torch.equal(picture.alpha, tensor(samples[..., 1:]))
    samples = noise(3, bits)
    key = samples[2, 4].astype(">u2").tobytes()
    png.write_bytes(with_chunk(imagecodecs.png_encode(samples), b"tRNS", key))
    picture = read(png)
    assert (picture.alpha[0, 0] == 0).nonzero().tolist() == [[2, 4]]
    assert torch.equal(picture.rgb, tensor(samples))
    image = Image.fromarray(np.array([[0, 1, 2]], dtype=np.uint8), "L").convert("P")
    image.putpalette([255, 0, 0, 0, 255, 0, 0, 0, 255])
    image.save(png, transparency=bytes([0, 51, 255]))
    assert torch.equal(read(png).rgb[0, :, 0], torch.eye(3))
    assert read(png).alpha.flatten().tolist() == pytest.approx([0, 0.2, 1])


@pytest.mark.parametrize("bits", [8, 16])
def test_tiff_layouts(tmp_path, bits):
    samples, path = noise(3, bits), tmp_path / "a.tif"
    layouts = [{"byteorder": ">"}, {"planarconfig": "separate"}, {"rowsperstrip": 4}]
    layouts += [{"tile": (16, 16)}, {"bigtiff": True}, {"predictor": True}]
    for compression in (None, "lzw", "zlib", "packbits"):
        for layout in layouts if compression in ("lzw", "zlib") else layouts[:-1]:
            stored = samples.transpose(2, 0, 1) if "planarconfig" in layout else samples
            path.write_bytes(tiff(stored, compression=compression, **layout))
            assert torch.equal(read(path).rgb, tensor(samples)), layout


def test_deep_tiff_with_white_zero_or_premultiplied_alpha(tmp_path):
    path, grey = tmp_path / "a.tif", noise(1, 16)
    path.write_bytes(tiff(grey[..., 0], photometric="miniswhite"))
    assert torch.equal(read(path).rgb, tensor(65535 - grey).expand(1, 3, -1, -1))
    samples = np.array([[[10000, 20000, 0, 40000], [0, 0, 0, 0]]], dtype=np.uint16)
    path.write_bytes(tiff(samples, extrasamples=["assocalpha"]))
    picture = read(path)
    assert picture.rgb[0, :, 0, 0].tolist() == pytest.approx([0.25, 0.5, 0], abs=1e-5)
    assert picture.rgb[0, :, 0, 1].tolist() == [0, 0, 0]
    assert picture.alpha.flatten().tolist() == pytest.approx([40000 / 65535, 0])


@pytest.mark.parametrize(
    "name", ["a.jpg", "a.png", "a.webp", "a.tif", "lzw.tif", "deep.png", "deep.tif"]
)
def test_orientation(tmp_path, name):
    path = tmp_path / name
    upright = noise(4, height=2, width=3).repeat(8, axis=0).repeat(8, axis=1)
    upright = upright[..., :3] if name == "a.jpg" else upright
    way = Image.Transpose
    stored_by = [way.FLIP_LEFT_RIGHT, way.ROTATE_180, way.FLIP_TOP_BOTTOM, way.TRANSPOSE]
    stored_by += [way.ROTATE_90, way.TRANSVERSE, way.ROTATE_270]
    for orientation, transposition in enumerate(stored_by, start=2):
        stored = np.asarray(Image.fromarray(upright).transpose(transposition))
        exif = Image.Exif()
        exif[0x0112] = orientation
        deep = stored.astype(np.uint16) * 257
        if name == "deep.tif":
            tag = (0x0112, "H", 1, orientation, True)
            path.write_bytes(tiff(deep, extrasamples=[2], extratags=[tag]))
        elif name == "deep.png":
            data = exif.tobytes().removeprefix(b"Exif\0\0")
            path.write_bytes(with_chunk(imagecodecs.png_encode(deep), b"eXIf", data))
        else:
            save(path, stored, exif=exif, **SAVING.get(name, {}))
        picture = read(path)
        assert picture.size == (16, 24)
        error = (picture.rgb - tensor(upright)[:, :3]).abs().max()
        assert error <= (0.03 if name == "a.jpg" else 0)
        assert name == "a.jpg" or torch.equal(picture.alpha, tensor(upright)[:, 3:])


def test_cmyk_is_converted_to_rgb(tmp_path):
    printed = torch.tensor([[1.0, 1, 1], [0, 1, 1], [1, 0, 0], [0, 0, 0]])
    Image.fromarray(INKS, "CMYK").save(tmp_path / "a.jpg", quality=100)
    Image.fromarray(INKS, "CMYK").save(tmp_path / "a.tif")
    (tmp_path / "b.tif").write_bytes(tiff(INKS.astype(np.uint16) * 257, photometric="separated"))
    for path in tmp_path.iterdir():
        assert torch.allclose(read(path).rgb[0, :, 4, 4::8].T, printed, atol=0.04)


def test_profiles_are_converted_to_srgb(tmp_path):
    shallow, deep = noise(3), noise(3, 16)
    for name in ("a.png", "a.tif", "a.webp"):
        save(tmp_path / name, shallow, icc_profile=LINEAR)
    png = with_chunk(imagecodecs.png_encode(deep), b"iCCP", b"linear\0\0" + zlib.compress(LINEAR))
    (tmp_path / "deep.png").write_bytes(png)
    (tmp_path / "deep.tif").write_bytes(tiff(deep, iccprofile=LINEAR))
    for path in tmp_path.iterdir():
        samples, error = (deep, 2e-4) if "deep" in path.name else (shallow, 1 / 255)
        expected = to_srgb(tensor(samples).double())
        assert (read(path).rgb - expected).abs().max() < error, path.name
    grey = imagecodecs.cms_profile("gray", gamma=1.0)
    for channels, profile in ((1, grey), (2, grey), (1, LINEAR)):
        picture = read(save(tmp_path / "a.png", noise(channels), icc_profile=profile))
        expected = to_srgb(tensor(noise(channels))[:, :1].double())
        assert (picture.rgb - expected).abs().max() < 1 / 255
        assert (picture.alpha is not None) == (channels == 2)


def test_unusable_metadata_costs_no_picture(tmp_path):
    save(tmp_path / "broken.png", noise(3), icc_profile=b"garbage" * 40)
    save(tmp_path / "grey.png", noise(3), icc_profile=imagecodecs.cms_profile("gray", gamma=2.2))
    for path in tmp_path.iterdir():
        with pytest.warns(UserWarning, match=f"{path.name}: its colour profile is unusable"):
            picture = read(path)
        assert torch.equal(picture.rgb, tensor(noise(3)))
    save(tmp_path / "a.jpg", np.full((8, 8, 3), 128, np.uint8), exif=b"Exif\0\0garbage" * 3)
    assert read(tmp_path / "a.jpg").size == (8, 8)


def test_bad_files_are_named_with_the_reason(tmp_path, caplog, monkeypatch):
    header = b"IHDR" + struct.pack(">IIBBBBB", 50000, 40000, 8, 2, 0, 0, 0)
    bomb = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + header
    bomb += struct.pack(">I", zlib.crc32(header))
    bomb = with_chunk(bomb, b"IDAT", zlib.compress(b""))
    bad = {
        "text.jpg": (b"These are words.\n", "is damaged, or in none of the formats JPEG, PNG"),
        "empty.png": (b"", "is empty"),
        "riff.webp": (b"RIFF\x00\x00\x00\x00WAVEfmt ", "in none of the formats"),
        "bomb.png": (bomb, "more than 178,956,970 pixels, Pillow's limit; shrink"),
        "head.png": (b"\x89PNG\r\n\x1a\n", "is damaged, or in none"),
        "head.tif": (b"II*\0\0\0\0\0", "is damaged or truncated"),
    }
    for name, (content, message) in bad.items():
        (tmp_path / name).write_bytes(content)
        refused(tmp_path / name, re.escape(message))
    for name in ("a.jpg", "a.png", "a.webp", "a.gif", "a.bmp", "a.tif", "deep.png", "deep.tif"):
        if "deep" in name:
            write(tmp_path / name, tensor(noise(3, 16, 40, 40)), bit_depth=16)
        else:
            save(tmp_path / name, noise(3, 8, 40, 40))
        content = (tmp_path / name).read_bytes()
        for part in (0.1, 0.5, 0.9):
            (tmp_path / name).write_bytes(content[: int(len(content) * part)])
            refused(tmp_path / name, "is damaged")
    refused(tmp_path / "nowhere.png", "does not exist")
    refused(tmp_path, "is a folder; name a picture file in it")
    os.mkfifo(tmp_path / "pipe.png")
    refused(tmp_path / "pipe.png", "is a device or pipe")

    path = save(tmp_path / "a.png", noise(3))
    monkeypatch.setattr(Image, "open", Mock(side_effect=OSError(5, os.strerror(5))))
    refused(path, "cannot be read: Input/output error")
    assert not caplog.records  # the message is the only line


def test_max_pixels_is_the_limit(tmp_path, monkeypatch):
    for name, bits in (("a.png", 8), ("deep.png", 16), ("a.tif", 16)):
        write(tmp_path / name, tensor(noise(3)), bit_depth=bits)
        monkeypatch.setattr(stored, "MAX_PIXELS", 117)
        assert read(tmp_path / name).size == (9, 13)
        monkeypatch.setattr(stored, "MAX_PIXELS", 116)
        refused(tmp_path / name, "13 x 9 = 117 pixels, more than the limit of 116")


def test_without_imagecodecs_files_that_need_it_name_its_extra(tmp_path, monkeypatch):
    deep = noise(3, 16)
    packed = {name: tiff(deep, compression=name) for name in ("lzw", "zlib")}
    png = with_chunk(imagecodecs.png_encode(deep), b"iCCP", b"linear\0\0" + zlib.compress(LINEAR))
    monkeypatch.setitem(sys.modules, "imagecodecs", None)
    extra = re.escape(pip_install("tiff"))
    for name, content in packed.items():
        (tmp_path / name).write_bytes(content)
        refused(tmp_path / name, f"is a compressed TIFF; save it without compression, or.*{extra}")
    (tmp_path / "a.png").write_bytes(png)
    refused(tmp_path / "a.png", f"has 16 bits and a colour profile; save it in sRGB, or.*{extra}")
    (tmp_path / "plain").write_bytes(tiff(deep))
    assert torch.equal(read(tmp_path / "plain").rgb, tensor(deep))


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("level", [0, 6])
def test_deep_png_of_other_programs_is_read_exactly(tmp_path, channels, level):
    samples = noise(channels, 16, 40, 50)
    path = tmp_path / "a.png"
    path.write_bytes(imagecodecs.png_encode(samples.squeeze(), level=level))
    picture = read(path)
    grey = channels < 3
    assert torch.equal(picture.rgb, tensor(samples[..., : 1 if grey else 3]).expand(1, 3, -1, -1))
    assert channels % 2 or torch.equal(picture.alpha, tensor(samples[..., -1:]))


@pytest.mark.parametrize("channels", [3, 4])
def test_deep_png_is_written_for_other_programs(tmp_path, channels):
    samples = noise(channels, 16, 40, 50)
    layers = tensor(samples)
    write(tmp_path / "a.png", layers[:, :3], layers[:, 3:] if channels == 4 else None, bit_depth=16)
    written = imagecodecs.png_decode((tmp_path / "a.png").read_bytes())
    assert np.array_equal(written, samples)


def test_tiffs_that_are_not_read_are_refused_in_one_line(tmp_path):
    deep = noise(3, 16)
    for content, message in (
        (tiff(deep.astype(np.uint32)), "has 3 32-bit uint32 samples per pixel"),
        (tiff(np.full((4, 4, 3), np.nan, np.float32)), "holds NaN or infinity"),
        (tiff(deep, photometric="cielab"), "CIELAB with compression NONE"),
        (tiff(deep, compression="zstd"), "RGB with compression ZSTD, which is not read; save it"),
    ):
        (tmp_path / "broken").write_bytes(content)
        refused(tmp_path / "broken", re.escape(message))


def test_tiffs_of_palettes_scanners_and_faxes_are_read(tmp_path, monkeypatch):
    path = tmp_path / "a.tif"
    monkeypatch.setitem(sys.modules, "imagecodecs", None)
    image = Image.fromarray(noise(3, height=16, width=24))
    kinds = [("P", None), ("LA", None), ("1", None), ("1", "group3"), ("1", "group4")]
    for mode, compression in (*kinds, ("L", "jpeg"), ("RGB", "jpeg"), ("CMYK", "jpeg")):
        image.convert(mode).save(path, compression=compression)
        picture = read(path)
        with Image.open(path) as stored:
            expected = tensor(np.asarray(stored.convert("RGB")))
        assert (picture.rgb - expected).abs().max() < 0.01, (mode, compression)
        assert (picture.alpha is None) == (mode != "LA")


def test_a_scan_behind_its_thumbnail_is_read(tmp_path):
    large = np.full((32, 48), 90, np.uint8)
    with tifffile.TiffWriter(tmp_path / "a.tif") as file:
        file.write(noise(3), photometric="rgb", metadata=None, subfiletype=1)
        file.write(large, photometric="minisblack", compression="jpeg", metadata=None)
    picture = read(tmp_path / "a.tif")
    assert picture.size == (32, 48)
    assert (picture.rgb - 90 / 255).abs().max() < 0.01


@pytest.mark.parametrize("bits", [16, 32, 64])
@pytest.mark.parametrize("options", [{}, {"compression": "zlib", "predictor": True}], ids=str)
def test_floats_of_tiff_are_read_from_zero_to_one(tmp_path, bits, options, caplog):
    samples = (noise(3, 16) / 65535).astype(f"float{bits}")
    (tmp_path / "a.tif").write_bytes(tiff(samples, **options))
    expected = torch.from_numpy(samples.transpose(2, 0, 1).astype(np.float32))
    assert (read(tmp_path / "a.tif").rgb - expected).abs().max() < 1e-5
    assert not caplog.records
    (tmp_path / "a.tif").write_bytes(tiff(samples * 2 - 1, **options))
    assert (read(tmp_path / "a.tif").rgb - (expected * 2 - 1).clip(0, 1)).abs().max() < 1e-3
    assert "clipped to 0 and 1" in caplog.text


def test_floats_of_tiff_follow_their_profile(tmp_path):
    samples = (noise(3, 16) / 65535).astype(np.float32)
    (tmp_path / "a.tif").write_bytes(tiff(samples, iccprofile=LINEAR))
    expected = to_srgb(torch.from_numpy(samples.transpose(2, 0, 1))[None].double())
    assert (read(tmp_path / "a.tif").rgb - expected).abs().max() < 1e-3
