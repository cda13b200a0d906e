"""Label pictures: which colours are painted, what is between them, and what is no label picture."""

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image, ImageDraw
from styletransfer.pictures.color_names import color_name, parse_color
from styletransfer.pictures.flat_colors import local_ranges, painted_colors, snap

from styletransfer.errors import UserError
from styletransfer.pictures import images
from styletransfer.pictures.labels import MOST, read_labels

RED, BLUE, GREEN, WHITE = (255, 0, 0), (0, 0, 255), (0, 128, 0), (255, 255, 255)
COLORS = [WHITE, RED, BLUE, GREEN]


def drawn(colors=COLORS, width=192, height=128, scale=1):
    """A background with a disc in each of the other colours, drawn `scale` times as large."""
    image = Image.new("RGB", (width * scale, height * scale), colors[0])
    draw = ImageDraw.Draw(image)
    step = width * scale / len(colors)
    for place, color in enumerate(colors[1:], start=1):
        x, y, r = place * step, height * scale * (0.3 + 0.4 * (place % 2)), 0.6 * step
        draw.ellipse((x - r, y - r, x + r, y + r), fill=color)
    return image


def compressed(image, quality):
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality)
    return Image.open(buffer)


def number_of(regions, color):
    return regions.find(f"rgb{color}")


def disagreement(regions, truth, colors=COLORS):
    """The share of pixels that are in another region than `truth` paints them in."""
    pixels = np.asarray(truth)
    wrong = np.zeros(pixels.shape[:2], bool)
    for color in colors:
        labels = regions.layers[number_of(regions, color), 0].numpy()
        wrong |= labels != (pixels == np.array(color)).all(2)
    return wrong.mean()


def test_a_clean_picture_is_taken_pixel_by_pixel():
    image = drawn()
    regions = read_labels(image, "labels")
    assert set(regions.names) == {"white", "red", "blue", "green"}
    assert disagreement(regions, image) == 0.0
    assert regions.snapped == 0
    assert regions.uncovered == 0.0
    assert regions.size == (128, 192)
    assert regions.shares[number_of(regions, RED)] == pytest.approx(
        (np.asarray(image) == RED).all(2).mean()
    )


def test_a_file_is_named_in_messages_and_gives_the_same_as_its_pixels(tmp_path):
    path = tmp_path / "labels.png"
    drawn().save(path)
    regions = read_labels(str(path), "content_regions")
    assert regions.source == str(path)
    assert torch.equal(regions.layers, read_labels(np.asarray(drawn()), "x").layers)


def test_palette_and_opaque_pictures_are_the_same():
    for same in (drawn().quantize(4), drawn().convert("RGBA")):
        assert disagreement(read_labels(same, "labels"), drawn()) == 0.0


def test_sixteen_bits_are_read(tmp_path):
    rgb = torch.tensor(np.asarray(drawn())).permute(2, 0, 1)[None] / 255.0
    images.write(tmp_path / "deep.png", rgb, bit_depth=16)
    assert disagreement(read_labels(tmp_path / "deep.png", "labels"), drawn()) == 0.0


def test_an_exif_orientation_is_applied(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    drawn().save(tmp_path / "turned.png", exif=exif)
    turned = read_labels(tmp_path / "turned.png", "labels")
    upright = drawn().transpose(Image.Transpose.ROTATE_270)
    assert turned.size == (192, 128)
    assert disagreement(turned, upright) == 0.0


# What is between the colours


@pytest.mark.parametrize("quality", [50, 75, 95])
def test_the_fringes_of_jpeg_take_the_colours_beside_them(quality):
    regions = read_labels(compressed(drawn(scale=4).resize((192, 128)), quality), "labels")
    assert set(regions.names) == {"white", "red", "blue", "green"}
    assert disagreement(regions, drawn()) < 0.02
    assert 0 < regions.snapped < 0.1 * 192 * 128


@pytest.mark.parametrize("factor", [0.5, 3, 8])
def test_resized_labels_keep_their_colours(factor):
    size = int(192 * factor), int(128 * factor)
    regions = read_labels(drawn().resize(size, Image.Resampling.BICUBIC), "labels")
    assert set(regions.names) == {"white", "red", "blue", "green"}
    exact = drawn().resize(size, Image.Resampling.NEAREST)
    assert disagreement(regions, exact) < 0.03
    assert regions.snapped > 0


def test_pixels_that_are_no_painted_colour_are_counted():
    pixels = np.full((20, 30, 3), 255, np.uint8)
    pixels[:, 15:] = RED
    pixels[:, 15] = (255, 128, 128)
    regions = read_labels(pixels, "labels")
    assert len(regions.names) == 2
    assert regions.snapped == 20


def test_antialiasing_between_black_and_white_makes_no_grey_where_none_is_beside():
    """Half black and half white is the very grey that is painted elsewhere."""
    black, white, grey = (0, 0, 0), (255, 255, 255), (128, 128, 128)
    pixels = np.zeros((60, 60, 3), np.uint8)
    pixels[:30, 30:] = white
    pixels[:30, 30] = (127, 127, 127)
    pixels[5, 30] = (1, 1, 1)  # a picture that is not clean
    pixels[50:, :20] = grey
    regions = read_labels(pixels, "labels")
    assert set(regions.names) == {"black", "white", "grey"}
    assert not regions.layers[number_of(regions, grey), 0, :40].any()
    assert regions.layers[number_of(regions, white), 0, :30, 31:].all()
    assert regions.layers[number_of(regions, black), 0, 30:50].all()


def test_a_speck_between_flat_colours_takes_the_nearest():
    pixels = np.asarray(drawn()).copy()
    pixels[0, 0] = (250, 230, 230)
    regions = read_labels(pixels, "labels")
    assert len(regions.names) == 4
    assert regions.layers[number_of(regions, WHITE), 0, 0, 0]


def test_a_small_region_of_a_jpeg_is_found():
    """Of 32 pixels a side, off the grid of blocks: nearly all have an edge in their block."""
    pixels = np.full((160, 200, 3), 255, np.uint8)
    pixels[56:88, 72:104] = (210, 30, 120)
    regions = read_labels(compressed(Image.fromarray(pixels), 50), "labels")
    assert len(regions.names) == 2
    assert min(regions.shares) == pytest.approx(32 * 32 / (160 * 200), rel=0.1)


def test_greys_one_level_apart_are_told_apart_in_a_clean_picture():
    levels = np.repeat(np.arange(5, dtype=np.uint8), 4)
    image = Image.fromarray(np.tile(levels, (12, 1)))
    regions = read_labels(image, "labels")
    assert len(regions.names) == 5
    assert regions.shares == pytest.approx([0.2] * 5)


@pytest.mark.parametrize("quality", [50, 90])
def test_grey_labels_survive_jpeg(quality):
    colors = [(v, v, v) for v in (0, 85, 170, 255)]
    regions = read_labels(compressed(drawn(colors), quality), "labels")
    assert disagreement(regions, drawn(colors), colors) < 0.02


def test_transparent_pixels_are_in_no_region():
    pixels = np.zeros((12, 20, 4), np.uint8)
    pixels[:, :10] = (*RED, 255)
    pixels[:6, 10:15] = (*BLUE, 255)
    pixels[6:, 10:15] = (*GREEN, 20)
    regions = read_labels(pixels, "labels")
    assert set(regions.names) == {"red", "blue"}
    assert regions.uncovered == pytest.approx(1 - 0.5 - 0.125)


# What is no label picture


def test_twelve_colours_are_taken_and_thirteen_asked_about():
    stripes = np.repeat(np.arange(13) * 19, 4).astype(np.uint8)
    pixels = np.tile(stripes[None, :, None], (12, 1, 3))
    assert len(read_labels(pixels[:, :48], "labels").names) == MOST
    with pytest.raises(UserError, match=r"^labels shows 13 flat colours; is it a photograph"):
        read_labels(pixels, "labels")


def test_thirteen_greys_one_level_apart_are_not_merged():
    pixels = np.tile(np.repeat(np.arange(13, dtype=np.uint8), 4)[None, :, None], (12, 1, 3))
    with pytest.raises(UserError, match="13 flat colours"):
        read_labels(pixels, "labels")


@pytest.mark.parametrize("grey", [False, True])
@pytest.mark.parametrize("name", ["coffee", "rocket", "astronaut", "chelsea"])
def test_photographs_are_asked_about(name, grey):
    path = Path(__file__).parents[2] / "assets" / "content" / f"{name}.jpg"
    image = Image.open(path)
    image.thumbnail((320, 320))
    with pytest.raises(UserError, match="is it a photograph"):
        read_labels(image.convert("L") if grey else image, "labels")


def test_smooth_shades_and_noise_are_asked_about():
    shade = np.tile(np.linspace(0, 1, 200, dtype=np.float32)[None, :, None], (100, 1, 3))
    noise = np.random.default_rng(0).random((50, 50, 3), np.float32)
    for pixels in (shade, noise):
        with pytest.raises(UserError, match="is it a photograph"):
            read_labels(pixels, "labels")


def test_a_region_without_a_flat_pixel_is_not_passed_over():
    """Dithering leaves the green disc without one: it is no region, and must not become white."""
    with pytest.raises(UserError, match="pixels between its flat colours; is it a photograph"):
        read_labels(drawn().convert("P"), "labels")


def test_a_transparent_picture_is_refused():
    with pytest.raises(UserError, match="transparent everywhere; paint"):
        read_labels(np.zeros((9, 9, 4), np.uint8), "labels")


# Numbers


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.int16])
def test_an_array_of_numbers_is_taken_as_it_is(dtype):
    numbers = np.array([[0, 0, 7], [2, 7, 7]], dtype)
    for source in (numbers, torch.from_numpy(numbers)):
        regions = read_labels(source, "labels")
        assert regions.names == ("0", "2", "7")
        assert torch.equal(regions.layers[2, 0], torch.from_numpy(numbers == 7))
        assert not regions.soft


def test_a_boolean_array_has_two_regions():
    regions = read_labels(np.array([[True, False], [True, True]]), "labels")
    assert regions.names == ("0", "1")
    assert regions.shares == [0.25, 0.75]


def test_negative_numbers_are_in_no_region():
    regions = read_labels(np.array([[-1, 3], [3, 4]]), "labels")
    assert regions.names == ("3", "4")
    assert regions.uncovered == 0.25


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.arange(13)[None], "labels has 13 regions; number at least 1 and at most 12"),
        (np.full((3, 3), -1), "labels has 0 regions"),
        (np.zeros((0, 3), int), "labels is empty"),
    ],
)
def test_numbers_that_are_no_labels_are_refused(array, message):
    with pytest.raises(UserError, match=message):
        read_labels(array, "labels")


# Names of colours


@pytest.mark.parametrize(
    ("text", "color"),
    [
        ("red", RED),
        ("Red ", RED),
        ("#ff0000", RED),
        ("ff0000", RED),
        ("0xFF0000", RED),
        ("(255,0,0)", RED),
        ("[255, 0, 0]", RED),
        ("255,0,0", RED),
        ("rgb(255, 0, 0)", RED),
        ("123456", (0x12, 0x34, 0x56)),
        ("sky", None),
        ("", None),
        ("(256,0,0)", None),
        ("1", None),
    ],
)
def test_colours_are_understood_as_people_write_them(text, color):
    assert parse_color(text) == color


@pytest.mark.parametrize(
    ("color", "name"),
    [
        (RED, "red"),
        ((254, 0, 2), "red"),
        ((0, 255, 255), "cyan"),
        ((128, 128, 128), "grey"),
        ((60, 60, 200), "#3c3cc8"),
    ],
)
def test_colours_are_named_where_a_name_is_near(color, name):
    assert color_name(color) == name


@given(st.tuples(*[st.integers(0, 255)] * 3))
def test_a_name_leads_back_to_its_colour(color):
    found = parse_color(color_name(color))
    assert found is not None
    assert max(abs(a - b) for a, b in zip(found, color, strict=True)) <= 16


def test_colours_that_would_share_a_name_are_written_as_numbers():
    pixels = np.zeros((9, 18, 3), np.uint8)
    pixels[:, 9:] = (0, 0, 6)
    assert set(read_labels(pixels, "labels").names) == {"#000000", "#000006"}


# Any picture


@given(arrays(np.uint8, (7, 9, 3), elements=st.sampled_from([0, 1, 100, 255])), st.data())
@settings(max_examples=50)
def test_every_visible_pixel_gets_one_colour(pixels, data):
    visible = data.draw(arrays(np.bool_, (7, 9)))
    visible[0, 0] = True
    ranges = local_ranges(pixels)
    colors, tolerance = painted_colors(pixels, ranges, visible)
    assert len(set(colors)) == len(colors)
    if 0 < len(colors) <= 255:
        labels, far = snap(pixels, ranges, visible, colors, tolerance)
        assert ((labels < len(colors)) == visible).all()
        assert set(labels[visible].tolist()) == set(range(len(colors)))
        assert visible[far].all()
