"""Pillow images that were turned after they were opened, and the EXIF tag that stays."""

import io

import numpy as np
import pytest
from PIL import Image, ImageOps

from styletransfer.pictures.convert import as_picture

WAY = Image.Transpose
STORED_BY = {
    2: WAY.FLIP_LEFT_RIGHT,
    3: WAY.ROTATE_180,
    4: WAY.FLIP_TOP_BOTTOM,
    5: WAY.TRANSPOSE,
    6: WAY.ROTATE_90,
    7: WAY.TRANSVERSE,
    8: WAY.ROTATE_270,
}
BACK = {5: WAY.TRANSPOSE, 6: WAY.ROTATE_270, 7: WAY.TRANSVERSE, 8: WAY.ROTATE_90}
UPRIGHT = np.random.default_rng(0).integers(0, 256, (8, 12, 3)).astype(np.uint8)


def opened(orientation, extension="png", sides=True):
    """Return a photograph that is stored turned, opened by Pillow; EXIF names its stored sides."""
    stored = Image.fromarray(UPRIGHT).transpose(STORED_BY[orientation])
    exif = Image.Exif()
    exif[274] = orientation
    if sides:
        exif.get_ifd(0x8769).update({0xA002: stored.width, 0xA003: stored.height})
    buffer = io.BytesIO()
    stored.save(buffer, extension, exif=exif, lossless=True)
    return Image.open(buffer)


def is_upright(image):
    rgb = as_picture(image, "content").rgb[0].permute(1, 2, 0) * 255
    return rgb.shape == UPRIGHT.shape and np.array_equal(rgb.round().numpy(), UPRIGHT)


@pytest.mark.parametrize("extension", ["png", "webp"])
@pytest.mark.parametrize("orientation", BACK)
def test_an_image_that_was_turned_by_hand_is_not_turned_again(caplog, orientation, extension):
    image = opened(orientation, extension)
    assert is_upright(image.transpose(BACK[orientation]))
    if orientation in (6, 8):
        assert is_upright(image.rotate(-90 if orientation == 6 else 90, expand=True))
    assert is_upright(image.transpose(BACK[orientation]).convert("RGBA").copy())
    assert not caplog.records


@pytest.mark.parametrize("orientation", BACK)
def test_an_image_that_was_only_converted_is_turned(caplog, orientation):
    assert is_upright(opened(orientation).convert("RGBA"))
    assert is_upright(opened(orientation).copy())
    assert not caplog.records


@pytest.mark.parametrize("orientation", STORED_BY)
def test_the_image_of_a_file_is_turned_as_its_tag_says(caplog, orientation):
    assert is_upright(opened(orientation, sides=False))
    assert is_upright(ImageOps.exif_transpose(opened(orientation)))
    assert not caplog.records


@pytest.mark.parametrize("orientation", STORED_BY)
def test_where_nobody_can_tell_the_turn_is_told(caplog, orientation):
    image = opened(orientation, sides=orientation < 5).convert("RGB")
    assert is_upright(image)
    (record,) = caplog.records
    told = f"the content image is turned by its EXIF orientation {orientation};"
    assert record.getMessage().startswith(told)
    assert "del image.getexif()[274]" in record.getMessage()
    turned = image.transpose(BACK.get(orientation, STORED_BY[orientation]))
    del turned.getexif()[274]
    assert is_upright(turned)
