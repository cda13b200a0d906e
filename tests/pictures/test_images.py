"""Writing and resizing pictures, and filling their transparent pixels."""

import io
import struct

import numpy as np
import pytest
import torch
from helpers import check_error
from PIL import Image, ImageCms, JpegImagePlugin

from styletransfer.pictures import images
from styletransfer.pictures.convert import small_picture
from styletransfer.pictures.transparency import crop_transparent, fill_transparent


def samples(channels=3, bits=8, height=9, width=13):
    """Return noise (1, C, H, W) in [0, 1], with values of `bits` bits."""
    levels = np.random.default_rng(0).integers(0, 2**bits, (1, channels, height, width))
    return torch.from_numpy(levels).float() / (2**bits - 1)


KINDS = [(".png", 8), (".png", 16), (".jpg", 8), (".webp", 8), (".tif", 16), (".TIFF", 8)]


@pytest.mark.parametrize(("extension", "bits"), KINDS)
def test_files_return_every_sample_in_srgb_and_equal_bytes(tmp_path, extension, bits):
    pixels = samples(4, bits, 70)  # more rows than a TIFF's strip
    path, again = tmp_path / f"a{extension}", tmp_path / f"b{extension}"
    for alpha in (None, pixels[:, 3:]) if extension != ".jpg" else (None,):
        for copy in (path, again):
            images.write(copy, pixels[:, :3], alpha, bit_depth=bits)
        assert path.read_bytes() == again.read_bytes()
        picture = images.read(path)
        assert extension == ".jpg" or torch.equal(picture.rgb, pixels[:, :3])
        assert (picture.alpha is None) == (alpha is None)
        assert alpha is None or torch.equal(picture.alpha, alpha)
    with Image.open(path) as image:
        profile = image.info["icc_profile"]
    described = ImageCms.getProfileDescription(ImageCms.ImageCmsProfile(io.BytesIO(profile)))
    assert described.startswith("sRGB")
    assert struct.unpack(">6H", profile[24:36]) == (2000, 1, 1, 0, 0, 0)  # not today's date
    images.write(path, samples(3, 16))  # only TIFF has 16 bits by default
    error = (images.read(path).rgb - samples(3, 16)).abs().max()
    assert (error < 1e-6) == (extension in (".tif", ".TIFF"))


def test_jpeg_keeps_chroma_and_lies_on_white(tmp_path):
    ramp = torch.linspace(0, 1, 32)
    rgb = torch.stack((ramp.expand(16, 32), ramp.flip(0).expand(16, 32), torch.ones(16, 32)))[None]
    images.write(tmp_path / "a.jpeg", rgb)
    assert (images.read(tmp_path / "a.jpeg").rgb - rgb).abs().max() < 0.03
    with Image.open(tmp_path / "a.jpeg") as image:
        assert JpegImagePlugin.get_sampling(image) == 0  # 4:4:4
    black = images.Picture(torch.zeros(1, 3, 8, 16), torch.full((1, 1, 8, 16), 0.2))
    images.write(tmp_path / "a.jpg", black.rgb, black.alpha)
    assert images.read(tmp_path / "a.jpg").alpha is None
    assert torch.allclose(images.read(tmp_path / "a.jpg").rgb, torch.tensor(0.8), atol=0.01)
    small = small_picture(black, 8)  # small pictures have no alpha either
    assert (small.size, small.mode) == ((8, 4), "RGB")
    assert np.unique(np.asarray(small)).tolist() == [204]
    assert small_picture(black, 99).size == (16, 8)


def test_values_are_clamped_and_rounded_whatever_their_type(tmp_path):
    values = torch.tensor([-0.5, 0.4 / 255, 0.6 / 255, 254.4 / 255, 254.6 / 255, 7.0])
    images.write(tmp_path / "a.png", values.expand(1, 3, 1, 6))
    assert (images.read(tmp_path / "a.png").rgb[0, 0, 0] * 255).tolist() == [0, 0, 1, 254, 255, 255]
    rgb = torch.full((1, 3, 4, 4), 0.5, dtype=torch.bfloat16, requires_grad=True)
    alpha = torch.full((1, 1, 4, 4), 201 / 255)
    images.write(tmp_path / "a.png", rgb, alpha)
    picture = images.read(tmp_path / "a.png")
    assert torch.allclose(picture.rgb, torch.tensor(0.5), atol=1 / 255)
    assert torch.equal(picture.alpha, alpha)  # alpha keeps its precision


def test_what_cannot_be_written_leaves_nothing(tmp_path):
    blank = torch.zeros(1, 3, 2, 2)
    for name in ("a.bmp", "a"):
        message = r"unknown extension '(\.bmp)?'; use \.png, \.jpg"
        check_error(message, images.check_writable, tmp_path / name)
        check_error(message, images.write, tmp_path / name, blank)
    for name, side in (("a.webp", 16384), ("a.jpg", 65501)):
        message = f"cannot hold {side} x 1 pixels, {side - 1} at most; use .png"
        check_error(message, images.write, tmp_path / name, torch.zeros(1, 3, 1, side))
        check_error(message, images.check_writable, tmp_path / name, (1, side))
    for value in (float("nan"), float("inf")):
        check_error("NaN or infinity", images.write, tmp_path / "a.png", blank + value)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("extension", images.LONGEST)
def test_the_longest_side_of_a_format_is_written(extension, tmp_path):
    wide = torch.zeros(1, 3, 1, images.LONGEST[extension])
    images.write(tmp_path / f"a{extension}", wide)
    assert images.read(tmp_path / f"a{extension}").size == (1, images.LONGEST[extension])


def test_resizing_keeps_constants_and_is_antialiased():
    for size, expected in (((3, 4), (6, 8)), ((4, 3), (8, 6)), ((3, 4000), (1, 8))):
        assert images.scaled_size(size, 8) == expected
        assert images.resize_picture(images.Picture(torch.rand(1, 3, *size)), 8).size == expected
    board = (torch.arange(64)[:, None] + torch.arange(64)).remainder(2).float()[None, None]
    inner = images.resize(board, (9, 11))[..., 2:-2, 2:-2]
    assert torch.allclose(inner, torch.tensor(0.5), atol=0.02)
    assert torch.allclose(images.resize(torch.full((1, 3, 7, 5), 0.3), (20, 3)), torch.tensor(0.3))
    edges = images.resize(board[..., :6, :6], (31, 31))
    assert (edges.min(), edges.max()) == (0.0, 1.0)


def test_hidden_colours_do_not_bleed_when_resizing():
    rgb, alpha = torch.zeros(1, 3, 16, 16), torch.zeros(1, 1, 16, 16)
    rgb[:, 0, :, :7], rgb[:, 1, :, 7:], alpha[..., :7] = 1, 1, 1
    for longer_side in (5, 40):
        resized = images.resize_picture(images.Picture(rgb, alpha), longer_side)
        assert resized.rgb[:, 1].max() == 0
        visible = resized.alpha[:, 0] > 0.01
        assert torch.allclose(resized.rgb[:, 0][visible], torch.tensor(1.0), atol=1e-3)


def test_cropping_keeps_the_visible_box():
    rgb, alpha = torch.rand(1, 3, 6, 8), torch.zeros(1, 1, 6, 8)
    alpha[0, 0, 1, 2], alpha[0, 0, 3, 6] = 0.5, 1
    cropped = crop_transparent(images.Picture(rgb, alpha))
    assert torch.equal(cropped.rgb, rgb[..., 1:4, 2:7])
    assert torch.equal(cropped.alpha, alpha[..., 1:4, 2:7])
    opaque = images.Picture(rgb)
    assert crop_transparent(opaque) is opaque
    ghost = images.Picture(rgb, torch.zeros(1, 1, 6, 8), "ghost.png")
    for function in (fill_transparent, crop_transparent):
        check_error(r"ghost\.png is fully transparent", function, ghost)


def test_filling_keeps_and_continues_opaque_pixels():
    rgb, alpha = torch.rand(1, 3, 32, 32) * 0.2, torch.ones(1, 1, 32, 32)
    rgb[..., 16:] += 0.8
    alpha[..., 12:20, 4:8], alpha[..., 12:20, 24:28] = 0, 0
    rgb[..., 2, 20], alpha[..., 2, 20] = 0, 0.5
    filled = fill_transparent(images.Picture(rgb, alpha))
    opaque = alpha.expand_as(rgb) == 1
    assert torch.equal(filled[opaque], rgb[opaque])
    assert filled[..., 14:18, 5:7].max() < 0.3
    assert filled[..., 14:18, 25:27].min() > 0.7
    assert ((filled[..., 2, 20] > 0.35) & (filled[..., 2, 20] < 0.55)).all()  # half transparent
    assert fill_transparent(images.Picture(rgb)) is rgb
    for size in ((1, 1), (1, 9), (7, 5), (16, 16)):
        alpha = torch.rand(1, 1, *size).round()
        alpha[..., 0, 0] = 1
        colour = torch.tensor([0.9, 0.5, 0.2]).view(1, 3, 1, 1)
        black_elsewhere = images.Picture(colour * alpha, alpha)
        filled = fill_transparent(black_elsewhere)
        assert torch.allclose(filled, colour.expand_as(filled), atol=1e-5)
