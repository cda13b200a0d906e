"""Picture files in and out: every format, depth, profile, orientation, and every bad input."""

import errno
import io
import os
import re
import struct
import tracemalloc
import zlib
from pathlib import Path

import imagecodecs
import numpy as np
import pytest
import tifffile
import torch
from PIL import Image, ImageCms, JpegImagePlugin

from styletransfer.errors import UserError
from styletransfer.pictures.images import (
    Picture,
    check_writable,
    crop_transparent,
    fill_transparent,
    read,
    resize,
    resize_picture,
    scaled_size,
    write,
)
from styletransfer.system.files import atomic

PRIMARIES = {"whitepoint": [0.3127, 0.3290], "primaries": [0.64, 0.33, 0.30, 0.60, 0.15, 0.06]}


def noise(channels, bits=8, height=9, width=13):
    rng = np.random.default_rng(0)
    return rng.integers(0, 2**bits, (height, width, channels)).astype(f"uint{bits}")


def tensor(samples):
    """(H, W, C) integer samples as (1, C, H, W) in [0, 1]."""
    unit = samples.astype(np.float32) / np.iinfo(samples.dtype).max
    return torch.from_numpy(unit.transpose(2, 0, 1).copy())[None]


def save(path, samples, mode=None, **options):
    """Write 8-bit samples with Pillow."""
    image = Image.fromarray(samples.squeeze())
    (image.convert(mode) if mode else image).save(path, **options)
    return path


def with_chunk(png, name, data):
    """Insert a chunk behind the header of a PNG file."""
    chunk = name + data
    framed = struct.pack(">I", len(data)) + chunk + struct.pack(">I", zlib.crc32(chunk))
    return png[:33] + framed + png[33:]


def srgb_from_linear(x):
    return np.where(x <= 0.0031308, 12.92 * x, 1.055 * np.maximum(x, 1e-9) ** (1 / 2.4) - 0.055)


# Round trips


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize(
    ("name", "bits"), [("a.png", 8), ("a.png", 16), ("a.webp", 8), ("a.tif", 8), ("a.TIFF", 16)]
)
def test_lossless_formats_return_every_sample_and_alpha(tmp_path, name, bits, channels):
    pixels = tensor(noise(channels, bits))
    rgb, alpha = pixels[:, :3], pixels[:, 3:] if channels == 4 else None
    write(tmp_path / name, rgb, alpha, bit_depth=bits)
    picture = read(tmp_path / name)
    assert torch.equal(picture.rgb, rgb)
    assert picture.rgb.dtype == torch.float32
    assert picture.size == (9, 13)
    if alpha is None:
        assert picture.alpha is None
    else:
        assert torch.equal(picture.alpha, alpha)


@pytest.mark.parametrize(("name", "bits"), [("a.png", 8), ("a.tif", 16), ("a.tiff", 16)])
def test_default_depth(tmp_path, name, bits):
    pixels = tensor(noise(3, 16))
    write(tmp_path / name, pixels)
    error = (read(tmp_path / name).rgb - pixels).abs().max()
    assert error <= 0.5 / (2**bits - 1) + 1e-6
    assert (error > 1e-6) == (bits == 8)


@pytest.mark.parametrize("extension", [".jpg", ".jpeg"])
def test_jpeg_is_close_and_keeps_chroma(tmp_path, extension):
    path = tmp_path / f"a{extension}"
    ramp = torch.linspace(0, 1, 32)
    rgb = torch.stack((ramp.expand(16, 32), ramp.flip(0).expand(16, 32), torch.ones(16, 32)))[None]
    write(path, rgb)
    assert (read(path).rgb - rgb).abs().max() < 0.03
    with Image.open(path) as image:
        assert JpegImagePlugin.get_sampling(image) == 0  # 4:4:4


def test_jpeg_lays_transparency_on_white(tmp_path):
    write(tmp_path / "a.jpg", torch.zeros(1, 3, 8, 8), torch.full((1, 1, 8, 8), 0.25))
    picture = read(tmp_path / "a.jpg")
    assert picture.alpha is None
    assert torch.allclose(picture.rgb, torch.tensor(0.75), atol=0.01)


@pytest.mark.parametrize(
    ("extension", "bits"),
    [(".png", 8), (".png", 16), (".jpg", 8), (".webp", 8), (".tif", 8), (".tif", 16)],
)
def test_files_are_tagged_srgb_and_equal_byte_for_byte(tmp_path, extension, bits):
    first, second = tmp_path / f"a{extension}", tmp_path / f"b{extension}"
    for path in (first, second):
        write(path, tensor(noise(3)), bit_depth=bits)
    assert first.read_bytes() == second.read_bytes()
    with Image.open(first) as image:
        profile = image.info["icc_profile"]
    described = ImageCms.getProfileDescription(ImageCms.ImageCmsProfile(io.BytesIO(profile)))
    assert described.startswith("sRGB")
    assert struct.unpack(">6H", profile[24:36]) == (2000, 1, 1, 0, 0, 0)  # not today's date


def test_values_are_clamped_and_rounded_to_the_nearest_sample(tmp_path):
    values = torch.tensor([-0.5, 0.4 / 255, 0.6 / 255, 254.4 / 255, 254.6 / 255, 7.0])
    write(tmp_path / "a.png", values.expand(1, 3, 1, 6))
    with Image.open(tmp_path / "a.png") as image:
        assert np.asarray(image)[0, :, 0].tolist() == [0, 0, 1, 254, 255, 255]


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_any_floating_dtype_can_be_written(tmp_path, dtype):
    rgb = torch.full((1, 3, 4, 4), 0.5, dtype=dtype, requires_grad=True)
    alpha = torch.full((1, 1, 4, 4), 201 / 255)
    write(tmp_path / "a.png", rgb, alpha)
    picture = read(tmp_path / "a.png")
    assert torch.allclose(picture.rgb, torch.tensor(0.5), atol=1 / 255)
    assert torch.equal(picture.alpha, alpha)  # its precision is its own, not that of the colours


# Reading what others wrote


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB"])
@pytest.mark.parametrize("extension", [".png", ".gif", ".bmp", ".tif"])
def test_eight_bit_modes_read_as_pillow_shows_them(tmp_path, extension, mode):
    path = save(tmp_path / f"a{extension}", noise(3), mode)
    with Image.open(path) as image:
        shown = np.asarray(image.convert("RGB"))
    picture = read(path)
    assert picture.alpha is None
    assert torch.equal(picture.rgb, tensor(shown))


def test_the_first_bytes_decide_not_the_extension(tmp_path):
    path = save(tmp_path / "a.jpg", noise(3), format="PNG")
    assert torch.equal(read(path).rgb, tensor(noise(3)))


@pytest.mark.parametrize("extension", [".gif", ".tif", ".webp", ".png"])
def test_the_first_of_several_frames_is_read(tmp_path, extension):
    frames = [Image.new("RGB", (4, 3), colour) for colour in ("#ff0000", "#00ff00")]
    options = {"lossless": True} if extension == ".webp" else {}
    path = tmp_path / f"a{extension}"
    frames[0].save(path, save_all=True, append_images=frames[1:], **options)
    assert torch.equal(read(path).rgb[0, :, 1, 1], torch.tensor([1.0, 0.0, 0.0]))


def test_palette_transparency_becomes_alpha(tmp_path):
    image = Image.fromarray(np.array([[0, 1, 2]], dtype=np.uint8), "L").convert("P")
    image.putpalette([255, 0, 0, 0, 255, 0, 0, 0, 255])
    image.save(tmp_path / "a.png", transparency=bytes([0, 51, 255]))
    image.save(tmp_path / "a.gif", transparency=1)
    picture = read(tmp_path / "a.png")
    assert torch.equal(picture.rgb[0, :, 0], torch.eye(3))
    assert picture.alpha.flatten().tolist() == pytest.approx([0, 0.2, 1])
    assert read(tmp_path / "a.gif").alpha.flatten().tolist() == [1, 0, 1]


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("extension", [".png", ".tif"])
@pytest.mark.parametrize("channels", [1, 2])
def test_grey_with_and_without_alpha(tmp_path, extension, channels, bits):
    samples, path = noise(channels, bits), tmp_path / f"a{extension}"
    if extension == ".tif":
        extra = ["unassalpha"] if channels == 2 else None
        tifffile.imwrite(path, samples, photometric="minisblack", extrasamples=extra)
    else:
        path.write_bytes(imagecodecs.png_encode(samples.squeeze()))
    picture = read(path)
    assert torch.equal(picture.rgb, tensor(samples[..., :1]).expand(1, 3, -1, -1))
    assert (picture.alpha is None) == (channels == 1)
    if channels == 2:
        assert torch.equal(picture.alpha, tensor(samples[..., 1:]))


@pytest.mark.parametrize("bits", [8, 16])
def test_a_transparent_png_colour_becomes_alpha(tmp_path, bits):
    samples = noise(3, bits)
    key = samples[2, 4].astype(">u2").tobytes()
    (tmp_path / "a.png").write_bytes(with_chunk(imagecodecs.png_encode(samples), b"tRNS", key))
    expected = torch.ones(1, 1, 9, 13)
    expected[0, 0, 2, 4] = 0
    picture = read(tmp_path / "a.png")
    assert torch.equal(picture.alpha, expected)
    assert torch.equal(picture.rgb, tensor(samples))


@pytest.mark.parametrize("options", [{}, {"compression": "lzw"}, {"planarconfig": "separate"}])
@pytest.mark.parametrize("byteorder", ["<", ">"])
def test_sixteen_bit_tiff_layouts(tmp_path, options, byteorder):
    samples = noise(3, 16)
    stored = samples.transpose(2, 0, 1) if "planarconfig" in options else samples
    tifffile.imwrite(
        tmp_path / "a.tif", stored, photometric="rgb", byteorder=byteorder, metadata=None, **options
    )
    assert torch.equal(read(tmp_path / "a.tif").rgb, tensor(samples))


def test_sixteen_bit_tiff_white_is_zero(tmp_path):
    samples = noise(1, 16)
    tifffile.imwrite(tmp_path / "a.tif", samples[..., 0], photometric="miniswhite")
    expected = tensor(65535 - samples).expand(1, 3, -1, -1)
    assert torch.equal(read(tmp_path / "a.tif").rgb, expected)


def test_sixteen_bit_premultiplied_alpha_is_divided_out(tmp_path):
    samples = np.array([[[10000, 20000, 0, 40000], [0, 0, 0, 0]]], dtype=np.uint16)
    tifffile.imwrite(tmp_path / "a.tif", samples, photometric="rgb", extrasamples=["assocalpha"])
    picture = read(tmp_path / "a.tif")
    assert picture.rgb[0, :, 0, 0].tolist() == pytest.approx([0.25, 0.5, 0], abs=1e-5)
    assert picture.rgb[0, :, 0, 1].tolist() == [0, 0, 0]
    assert picture.alpha.flatten().tolist() == pytest.approx([40000 / 65535, 0])


INKS = np.array([[[0, 0, 0, 0], [255, 0, 0, 0], [0, 255, 255, 0], [0, 0, 0, 255]]], dtype=np.uint8)
INKS = INKS.repeat(8, axis=0).repeat(8, axis=1)  # flat JPEG blocks
PRINTED = torch.tensor([[1.0, 1, 1], [0, 1, 1], [1, 0, 0], [0, 0, 0]])


@pytest.mark.parametrize("name", ["a.jpg", "a.tif", "deep.tif"])
def test_cmyk(tmp_path, name):
    path = tmp_path / name
    if name == "deep.tif":
        tifffile.imwrite(path, INKS.astype(np.uint16) * 257, photometric="separated")
    else:
        Image.fromarray(INKS, "CMYK").save(path)
    shown = read(path).rgb[0, :, 4, 4::8].T
    assert torch.allclose(shown, PRINTED, atol=0.02)


# Orientation: how an upright picture is stored under each EXIF value

STORED = {
    1: None,
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}
SAVING = {
    "a.jpg": {"quality": 95, "subsampling": 0},
    "a.webp": {"lossless": True, "exact": True},
    "lzw.tif": {"compression": "tiff_lzw"},
}


@pytest.mark.parametrize("orientation", STORED)
@pytest.mark.parametrize(
    "name", ["a.jpg", "a.png", "a.webp", "a.tif", "lzw.tif", "deep.png", "deep.tif"]
)
def test_orientation(tmp_path, name, orientation):
    path = tmp_path / name
    upright = noise(4, height=2, width=3).repeat(8, axis=0).repeat(8, axis=1)
    if name == "a.jpg":
        upright = upright[..., :3]
    stored = Image.fromarray(upright)
    if orientation != 1:
        stored = stored.transpose(STORED[orientation])
    exif = Image.Exif()
    exif[0x0112] = orientation
    deep = np.asarray(stored).astype(np.uint16) * 257
    if name == "deep.tif":
        tag = (0x0112, "H", 1, orientation, True)
        tifffile.imwrite(path, deep, photometric="rgb", extrasamples=[2], extratags=[tag])
    elif name == "deep.png":
        data = exif.tobytes().removeprefix(b"Exif\0\0")
        path.write_bytes(with_chunk(imagecodecs.png_encode(deep), b"eXIf", data))
    else:
        stored.save(path, exif=exif, **SAVING.get(name, {}))
    picture = read(path)
    assert picture.size == (16, 24)
    assert torch.allclose(picture.rgb, tensor(upright)[:, :3], atol=0.03 if name == "a.jpg" else 0)
    if name != "a.jpg":
        assert torch.equal(picture.alpha, tensor(upright)[:, 3:])


def test_corrupt_exif_is_no_reason_to_refuse_a_picture(tmp_path):
    save(tmp_path / "a.jpg", np.full((8, 8, 3), 128, np.uint8), exif=b"Exif\0\0garbage" * 3)
    assert read(tmp_path / "a.jpg").size == (8, 8)


# Profiles


@pytest.mark.parametrize("name", ["a.png", "a.tif", "a.webp", "deep.png", "deep.tif"])
def test_a_linear_profile_is_converted_to_srgb(tmp_path, name):
    path, linear = tmp_path / name, imagecodecs.cms_profile("rgb", gamma=1.0, **PRIMARIES)
    samples = noise(3, 16 if "deep" in name else 8)
    if name == "deep.png":
        data = b"linear\0\0" + zlib.compress(linear)
        path.write_bytes(with_chunk(imagecodecs.png_encode(samples), b"iCCP", data))
    elif name == "deep.tif":
        tifffile.imwrite(path, samples, photometric="rgb", iccprofile=linear)
    else:
        options = {"lossless": True} if name == "a.webp" else {}
        save(path, samples, icc_profile=linear, **options)
    expected = srgb_from_linear(tensor(samples).numpy())
    assert np.abs(read(path).rgb.numpy() - expected).max() < 2e-4


def test_a_profile_keeps_sixteen_bits_apart(tmp_path):
    linear = imagecodecs.cms_profile("rgb", gamma=1.0, **PRIMARIES)
    ramp = np.arange(30000, 30064, dtype=np.uint16).reshape(1, 64, 1).repeat(3, axis=2)
    tifffile.imwrite(tmp_path / "a.tif", ramp, photometric="rgb", iccprofile=linear)
    assert (read(tmp_path / "a.tif").rgb.diff(dim=3) > 0).all()


@pytest.mark.parametrize("alpha", [False, True])
def test_a_grey_profile(tmp_path, alpha):
    samples = noise(2 if alpha else 1)
    profile = imagecodecs.cms_profile("gray", gamma=1.0)
    path = save(tmp_path / "a.png", samples, icc_profile=profile)
    picture = read(path)
    expected = srgb_from_linear(tensor(samples).numpy()[:, :1])
    assert np.abs(picture.rgb.numpy() - expected).max() < 2e-4
    assert (picture.alpha is not None) == alpha


def test_an_rgb_profile_in_a_grey_picture(tmp_path):
    linear = imagecodecs.cms_profile("rgb", gamma=1.0, **PRIMARIES)
    samples = noise(1)
    picture = read(save(tmp_path / "a.jpg", np.full_like(samples, 55), icc_profile=linear))
    assert np.allclose(picture.rgb.numpy(), srgb_from_linear(np.array(55 / 255)), atol=1e-3)


def red_cyan_profile():
    """A CMYK profile in which cyan ink prints sRGB red, black ink black, the others nothing."""
    white, red, black = (255, 128, 128), (138, 209, 198), (0, 128, 128)  # L*, a*, b* in 8 bits
    nodes = [black if k else red if c else white for c, m, y, k in np.ndindex(2, 2, 2, 2)]
    identity = struct.pack(">9i", *(65536 if i % 4 == 0 else 0 for i in range(9)))
    ramp = bytes(range(256))
    table = b"mft1" + bytes(4) + bytes([4, 3, 2, 0]) + identity
    table += 4 * ramp + bytes(np.ravel(nodes).tolist()) + 3 * ramp
    size = 128 + 16 + len(table)
    header = struct.pack(">I4sI4s4s4s", size, b"lcms", 0x02100000, b"prtr", b"CMYK", b"Lab ")
    header += struct.pack(">6H4s", 2000, 1, 1, 0, 0, 0, b"acsp") + bytes(28)
    header += struct.pack(">3i", 63190, 65536, 54061)  # the D50 white point
    return header.ljust(128, b"\0") + struct.pack(">I4sII", 1, b"A2B0", 144, len(table)) + table


@pytest.mark.parametrize("name", ["a.jpg", "deep.tif"])
def test_a_cmyk_profile(tmp_path, name):
    path, profile = tmp_path / name, red_cyan_profile()
    if name == "deep.tif":
        deep = INKS.astype(np.uint16) * 257
        tifffile.imwrite(path, deep, photometric="separated", iccprofile=profile)
    else:
        Image.fromarray(INKS, "CMYK").save(path, icc_profile=profile, quality=100)
    shown = read(path).rgb[0, :, 4, 4::8].T
    expected = torch.tensor([[1.0, 1, 1], [1, 0, 0], [1, 1, 1], [0, 0, 0]])
    assert torch.allclose(shown, expected, atol=0.04)


@pytest.mark.parametrize(
    "profile", [b"garbage" * 40, imagecodecs.cms_profile("gray", gamma=2.2)], ids=["broken", "grey"]
)
def test_an_unusable_profile_is_ignored_with_a_warning(tmp_path, profile):
    path = save(tmp_path / "a.png", noise(3), icc_profile=profile)
    with pytest.warns(UserWarning, match=r"a\.png: its colour profile is unusable"):
        picture = read(path)
    assert torch.equal(picture.rgb, tensor(noise(3)))


# Bad input


def bomb():
    header = struct.pack(">IIBBBBB", 50000, 40000, 8, 2, 0, 0, 0)
    framed = struct.pack(">I", 13) + b"IHDR" + header
    png = b"\x89PNG\r\n\x1a\n" + framed + struct.pack(">I", zlib.crc32(b"IHDR" + header))
    return with_chunk(png, b"IDAT", zlib.compress(b""))


BAD = {
    "text.jpg": (b"These are words.\n", "no JPEG, PNG, WebP, TIFF, BMP or GIF picture"),
    "empty.png": (b"", "is empty"),
    "riff.webp": (b"RIFF\x00\x00\x00\x00WAVEfmt ", "no JPEG, PNG"),
    "bomb.png": (
        bomb(),
        "50000 x 40000 = 2,000,000,000 pixels, more than the limit of 134,217,728",
    ),
    "head.png": (b"\x89PNG\r\n\x1a\n", "damaged or truncated PNG"),
    "head.tif": (b"II*\0\0\0\0\0", "damaged or truncated TIFF"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_named_with_the_reason(tmp_path, caplog, name):
    content, message = BAD[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        read(tmp_path / name)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not caplog.records  # the message is the only line


def test_missing_path_folder_and_pipe(tmp_path):
    with pytest.raises(UserError, match=r"nowhere\.png does not exist"):
        read(tmp_path / "nowhere.png")
    with pytest.raises(UserError, match=f"{re.escape(str(tmp_path))} is a folder"):
        read(tmp_path)
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(UserError, match=r"pipe\.png is a device or pipe"):
        read(tmp_path / "pipe.png")


@pytest.mark.parametrize("kept", [0.1, 0.5, 0.9])
@pytest.mark.parametrize(
    "name", ["a.jpg", "a.png", "a.webp", "a.gif", "a.bmp", "a.tif", "deep.png", "deep.tif"]
)
def test_truncated_files(tmp_path, name, kept):
    path = tmp_path / name
    if "deep" in name:
        write(path, tensor(noise(3, 16, 40, 40)), bit_depth=16)
    else:
        save(path, noise(3, 8, 40, 40))
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * kept)])
    with pytest.raises(UserError, match=rf"{name} is a damaged or truncated"):
        read(path)


@pytest.mark.parametrize(("name", "bits"), [("a.png", 8), ("a.png", 16), ("a.tif", 16)])
def test_max_pixels(tmp_path, name, bits):
    write(tmp_path / name, tensor(noise(3)), bit_depth=bits)
    assert read(tmp_path / name, max_pixels=117).size == (9, 13)
    with pytest.raises(UserError, match="13 x 9 = 117 pixels, more than the limit of 116"):
        read(tmp_path / name, max_pixels=116)


def test_a_picture_over_pillows_own_limit_is_read(tmp_path, monkeypatch):
    path = save(tmp_path / "a.png", noise(3))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10)
    assert read(path).size == (9, 13)
    assert Image.MAX_IMAGE_PIXELS == 10


@pytest.mark.parametrize(
    ("dtype", "photometric"), [("float32", "rgb"), ("uint32", "minisblack"), ("uint16", "cielab")]
)
def test_unsupported_tiff_samples_are_named(tmp_path, dtype, photometric):
    shape = (4, 5) if photometric == "minisblack" else (4, 5, 3)
    tifffile.imwrite(tmp_path / "a.tif", np.zeros(shape, dtype), photometric=photometric)
    with pytest.raises(UserError, match=f"{dtype} {photometric.upper()} samples; save it with"):
        read(tmp_path / "a.tif")


def test_an_unsupported_colour_model_is_named(tmp_path):
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, noise(3), photometric="cielab")
    with pytest.raises(UserError, match="LAB colours; save it as RGB"):
        read(path)


# Writing safely


@pytest.mark.parametrize("check", [check_writable, lambda p: write(p, torch.zeros(1, 3, 2, 2))])
def test_paths_that_cannot_be_written(tmp_path, check):
    (tmp_path / "file").touch()
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(UserError, match=r"unknown extension '\.bmp'; use \.png, \.jpg"):
        check(tmp_path / "a.bmp")
    with pytest.raises(UserError, match="unknown extension ''"):
        check(tmp_path / "a")
    with pytest.raises(UserError, match=r"a\.png: (Not a directory|File exists)"):
        check(tmp_path / "file" / "a.png")
    with pytest.raises(UserError, match=r"folder\.png: (it is a folder|Is a directory)"):
        check(tmp_path / "folder.png")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder.png"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder(tmp_path):
    tmp_path.chmod(0o500)
    for check in (check_writable, lambda p: write(p, torch.zeros(1, 3, 2, 2))):
        with pytest.raises(UserError, match="Permission denied"):
            check(tmp_path / "a.png")


def test_missing_folders_are_created_by_write_alone(tmp_path):
    path = tmp_path / "new" / "folder" / "a.png"
    check_writable(path)
    assert not list(tmp_path.iterdir())
    write(path, torch.zeros(1, 3, 2, 2))
    assert read(path).size == (2, 2)


@pytest.mark.parametrize(("name", "bits"), [("a.jpg", 16), ("a.webp", 16), ("a.png", 12)])
def test_unsuitable_depth(tmp_path, name, bits):
    for check in (check_writable, lambda p, **kw: write(p, torch.zeros(1, 3, 2, 2), **kw)):
        with pytest.raises(UserError, match=f"has no {bits}-bit samples; use 8"):
            check(tmp_path / name, bit_depth=bits)


@pytest.mark.parametrize(("name", "side"), [("a.webp", 16384), ("a.jpg", 65536)])
def test_a_size_that_the_format_cannot_hold(tmp_path, name, side):
    with pytest.raises(UserError, match=f"cannot hold {side} x 1 pixels"):
        write(tmp_path / name, torch.zeros(1, 3, 1, side))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_non_finite_pixels_are_refused(tmp_path, value):
    rgb = torch.zeros(1, 3, 2, 2)
    rgb[0, 1, 1, 0] = value
    with pytest.raises(UserError, match="NaN or infinity"):
        write(tmp_path / "a.png", rgb)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_leaves_the_old_picture_and_nothing_else(tmp_path, monkeypatch):
    def full(self, data):
        with self.open("wb") as file:
            file.write(data[: len(data) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "a.png"
    write(path, torch.zeros(1, 3, 2, 2))
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(UserError, match=r"cannot write .*a\.png: No space left on device"):
            write(path, torch.ones(1, 3, 2, 2))
    assert list(tmp_path.iterdir()) == [path]
    assert torch.equal(read(path).rgb, torch.zeros(1, 3, 2, 2))


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_atomic_cleans_up_after_any_exception(tmp_path, error):
    def fail():
        with atomic(tmp_path / "a.json") as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(error):
        fail()
    assert not list(tmp_path.iterdir())


def test_atomic_writes_through_a_link_and_respects_the_umask(tmp_path):
    target, link, plain = tmp_path / "target.txt", tmp_path / "link.txt", tmp_path / "plain.txt"
    link.symlink_to(target)
    plain.touch()
    with atomic(link) as temporary:
        temporary.write_text("new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert target.stat().st_mode == plain.stat().st_mode


# Resizing and transparency


@pytest.mark.parametrize(
    ("size", "longer_side", "expected"),
    [((3, 4), 8, (6, 8)), ((4, 3), 8, (8, 6)), ((3, 4000), 64, (1, 64)), ((1, 1), 5, (5, 5))],
)
def test_fit(size, longer_side, expected):
    assert scaled_size(size, longer_side) == expected
    picture = resize_picture(Picture(torch.rand(1, 3, *size)), longer_side)
    assert picture.size == expected
    assert 0 <= picture.rgb.min() <= picture.rgb.max() <= 1


def test_resize_is_antialiased_and_keeps_constants():
    board = (torch.arange(64)[:, None] + torch.arange(64)).remainder(2).float()[None, None]
    assert torch.allclose(resize(board, (9, 11))[..., 2:-2, 2:-2], torch.tensor(0.5), atol=0.02)
    assert torch.allclose(resize(torch.full((1, 3, 7, 5), 0.3), (20, 3)), torch.tensor(0.3))


@pytest.mark.parametrize("longer_side", [5, 40])
def test_hidden_colours_do_not_bleed_when_resizing(longer_side):
    rgb, alpha = torch.zeros(1, 3, 16, 16), torch.zeros(1, 1, 16, 16)
    rgb[:, 0, :, :7], rgb[:, 1, :, 7:], alpha[..., :7] = 1, 1, 1
    small = resize_picture(Picture(rgb, alpha), longer_side)
    assert small.rgb[:, 1].max() == 0
    seen = small.alpha[:, 0] > 0.01
    assert torch.allclose(small.rgb[:, 0][seen], torch.tensor(1.0), atol=1e-3)


def test_cropping_keeps_the_visible_box():
    rgb, alpha = torch.rand(1, 3, 6, 8), torch.zeros(1, 1, 6, 8)
    alpha[0, 0, 1, 2], alpha[0, 0, 3, 6] = 0.5, 1
    cropped = crop_transparent(Picture(rgb, alpha))
    assert torch.equal(cropped.rgb, rgb[..., 1:4, 2:7])
    assert torch.equal(cropped.alpha, alpha[..., 1:4, 2:7])
    opaque = Picture(rgb)
    assert crop_transparent(opaque) is opaque


@pytest.mark.parametrize("size", [(1, 1), (1, 9), (7, 5), (16, 16)])
def test_filling_never_brings_in_hidden_colours(size):
    alpha = torch.rand(1, 1, *size).round()
    alpha[..., 0, 0] = 1
    colour = torch.tensor([0.9, 0.5, 0.2]).view(1, 3, 1, 1)
    filled = fill_transparent(Picture(colour * alpha, alpha))  # black where transparent
    assert torch.allclose(filled, colour.expand_as(filled), atol=1e-5)


def test_filling_keeps_opaque_pixels_and_continues_their_surroundings():
    rgb, alpha = torch.rand(1, 3, 32, 32) * 0.2, torch.ones(1, 1, 32, 32)
    rgb[..., 16:] += 0.8
    alpha[..., 12:20, 4:8], alpha[..., 12:20, 24:28] = 0, 0
    filled = fill_transparent(Picture(rgb, alpha))
    seen = alpha.expand_as(rgb) == 1
    assert torch.equal(filled[seen], rgb[seen])
    assert filled[..., 14:18, 5:7].mean() < 0.3
    assert filled[..., 14:18, 25:27].mean() > 0.7


def test_half_transparent_pixels_are_laid_over_the_fill():
    rgb, alpha = torch.ones(1, 3, 8, 8), torch.ones(1, 1, 8, 8)
    rgb[..., 4, 4], alpha[..., 4, 4] = 0, 0.5
    mixed = fill_transparent(Picture(rgb, alpha))[..., 4, 4]
    assert ((mixed > 0.4) & (mixed < 0.6)).all()


def test_opaque_pictures_need_no_fill():
    rgb = torch.rand(1, 3, 4, 4)
    assert fill_transparent(Picture(rgb)) is rgb


@pytest.mark.parametrize("function", [fill_transparent, crop_transparent])
def test_a_fully_transparent_picture_is_named(tmp_path, function):
    write(tmp_path / "ghost.png", torch.rand(1, 3, 4, 4), torch.zeros(1, 1, 4, 4))
    with pytest.raises(UserError, match=r"ghost\.png is fully transparent"):
        function(read(tmp_path / "ghost.png"))


def test_a_tiff_is_written_strip_by_strip(tmp_path: Path) -> None:
    """A large picture would have 16-bit samples of half its size, and a file of about as much."""
    rgb = torch.rand(1, 3, 3000, 300, generator=torch.Generator().manual_seed(0))
    write(tmp_path / "large.tif", rgb[:, :, :70])  # imports what it needs
    tracemalloc.start()
    try:
        write(tmp_path / "large.tif", rgb)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3000 * 300 * 6 / 4
    assert torch.equal(read(tmp_path / "large.tif").rgb, (rgb * 65535).round() / 65535)
    with tifffile.TiffFile(tmp_path / "large.tif") as file:
        assert file.pages[0].rowsperstrip == 64
        assert len(file.pages[0].dataoffsets) == 47
