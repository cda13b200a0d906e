"""Regions as people give them: painted labels, numbers, masks; and what is none of these."""

import io

import numpy as np
import pytest
import torch
from helpers import ROOT, check_error
from PIL import Image, ImageDraw

from styletransfer.errors import UserError
from styletransfer.pictures import images
from styletransfer.pictures.labels import read_mask, read_regions

RED, BLUE, GREEN, WHITE = (255, 0, 0), (0, 0, 255), (0, 128, 0), (255, 255, 255)
COLORS = [WHITE, RED, BLUE, GREEN]
RAMP = np.tile(np.linspace(0, 1, 16, dtype=np.float32), (10, 1))


def drawn(scale=1):
    """A background with a disc in each of the other colours, drawn `scale` times as large."""
    image = Image.new("RGB", (192 * scale, 128 * scale), WHITE)
    draw, step = ImageDraw.Draw(image), 48 * scale
    for place, color in enumerate(COLORS[1:], start=1):
        x, y, r = place * step, 128 * scale * (0.3 + 0.4 * (place % 2)), 0.6 * step
        draw.ellipse((x - r, y - r, x + r, y + r), fill=color)
    return image


def disagreement(regions, truth):
    """The share of pixels that are in another region than `truth` paints them in."""
    pixels = np.asarray(truth)
    wrong = np.zeros(pixels.shape[:2], bool)
    for color in COLORS:
        labels = regions.layers[regions.find(f"rgb{color}"), 0].numpy()
        wrong |= labels != (pixels == np.array(color)).all(2)
    return wrong.mean()


def stripes(colors, width=4):
    return np.tile(np.repeat(np.array(colors, np.uint8), width, axis=0), (12, 1, 1))


def test_a_clean_picture_is_taken_pixel_by_pixel(tmp_path):
    image, path = drawn(), tmp_path / "labels.png"
    image.save(path)
    regions = read_regions(str(path), "content_regions")
    assert regions.names == ("white", "red", "green", "blue")  # the largest first
    assert (regions.source, regions.size, regions.soft) == (str(path), (128, 192), False)
    assert (regions.snapped, regions.uncovered) == (0, 0.0)
    assert regions.shares == regions.layers.double().mean((1, 2, 3)).tolist()
    for same in (image, image.quantize(4), image.convert("RGBA")):
        assert disagreement(read_regions(same, "labels"), image) == 0.0
    # Colours a level apart are told apart.
    greys = [(level, level, level) for level in range(13)]
    regions = read_regions(stripes(greys[:12]), "labels")
    assert regions.shares == pytest.approx([1 / 12] * 12)
    with pytest.raises(UserError, match=r"^labels shows 13 flat colours; is it a photograph"):
        read_regions(stripes(greys), "labels")


def test_other_colours_take_the_nearest_and_transparent_pixels_are_in_no_region():
    pixels = stripes([WHITE, RED], 15)
    pixels[:, 15] = (255, 120, 120)  # nearer to red
    pixels[2, 2], pixels[3, 2], pixels[4, 2] = (255, 223, 255), (223, 223, 223), (222, 255, 255)
    regions = read_regions(pixels, "labels")
    assert regions.names == ("white", "red")
    assert regions.layers[1, 0].sum() == 12 * 15
    assert regions.layers[0, 0, 2:5, 2].all()
    assert regions.snapped == 12 + 1  # beyond 32 levels
    pixels = np.zeros((12, 20, 4), np.uint8)
    pixels[:, :10] = (*RED, 255)
    pixels[:6, 10:15] = (*BLUE, 128)
    pixels[6:, 10:15] = (*GREEN, 127)
    regions = read_regions(pixels, "labels")
    assert set(regions.names) == {"red", "blue"}
    assert regions.uncovered == pytest.approx(1 - 0.5 - 0.125)
    with pytest.raises(UserError, match="transparent everywhere; paint"):
        read_regions(np.zeros((9, 9, 4), np.uint8), "labels")


def test_edges_of_resized_labels_and_of_jpeg_take_the_nearest_colour():
    for quality in (50, 95):
        buffer = io.BytesIO()
        drawn(scale=4).resize((192, 128)).save(buffer, "JPEG", quality=quality)
        regions = read_regions(Image.open(buffer), "labels")
        assert set(regions.names) == {"white", "red", "blue", "green"}
        assert disagreement(regions, drawn()) < 0.03
        assert 0 < regions.snapped < 0.1 * 192 * 128
    for size in ((96, 64), (576, 384)):
        regions = read_regions(drawn().resize(size, Image.Resampling.BICUBIC), "labels")
        assert set(regions.names) == {"white", "red", "blue", "green"}
        assert disagreement(regions, drawn().resize(size, Image.Resampling.NEAREST)) < 0.03


def test_photographs_shades_noise_and_regions_that_are_nowhere_flat_are_asked_about():
    for name in ("coffee", "rocket", "astronaut", "chelsea"):
        photo = Image.open(ROOT / "assets" / "content" / f"{name}.jpg")
        photo.thumbnail((320, 320))
        check_error("is it a photograph", read_regions, photo, "labels")
    shade = np.tile(np.linspace(0, 1, 200, dtype=np.float32)[None, :, None], (100, 1, 3))
    noise = np.random.default_rng(0).random((50, 50, 3), np.float32)
    for source in (shade, noise):
        check_error(r"flat colours; is it a photograph\? .* as PNG", read_regions, source, "labels")


def test_an_array_of_numbers_is_taken_as_it_is():
    numbers = np.array([[0, 0, 7], [2, -1, 7]])
    for source in (numbers, torch.from_numpy(numbers), numbers.astype(np.int16)):
        regions = read_regions(source, "labels")
        assert (regions.names, regions.soft) == (("0", "2", "7"), False)
        assert torch.equal(regions.layers[2, 0], torch.from_numpy(numbers == 7))
        assert regions.uncovered == pytest.approx(1 / 6)
    assert read_regions(numbers == 2, "labels").names == ("0", "1")
    for array, message in (
        (np.arange(13)[None], "labels has 13 regions; number at least 1 and at most 12"),
        (np.full((3, 3), -1), "labels has 0 regions"),
        (np.zeros((0, 3), int), "labels is empty"),
    ):
        check_error(message, read_regions, array, "labels")


def saved(path, grey):
    """Write floats (H, W) in [0, 1] as a grey picture; return its path."""
    images.write(path, torch.as_tensor(grey, dtype=torch.float32).expand(1, 3, *grey.shape))
    return path


def test_soft_edges_of_masks_are_kept_whatever_they_are_given_as(tmp_path):
    levels = np.round(RAMP * 255).astype(np.uint8)
    files = [Image.fromarray(levels), levels, saved(tmp_path / "a.png", RAMP)]
    for source in (RAMP, torch.from_numpy(RAMP), *files):
        mask = read_mask(source, "protect")
        assert mask.shape == (1, 1, 10, 16)
        assert (mask[0, 0] - torch.from_numpy(RAMP)).abs().max() <= 0.5 / 255 + 1e-6
    assert read_mask(RAMP > 0.5, "protect").unique().tolist() == [0.0, 1.0]
    pixels = np.full((4, 6, 4), 255, np.uint8)
    pixels[:, 3:, 3] = 51
    assert read_mask(pixels, "protect")[0, 0, 0].tolist() == pytest.approx([1.0] * 3 + [0.2] * 3)
    assert read_mask(np.full((4, 6), 0.51 / 255), "protect").max() > 0
    for grey in (0.49 / 255, 0.0):
        check_error(r"^protect is an empty mask", read_mask, np.full((4, 6), grey), "protect")


def test_a_list_or_a_folder_is_masks_that_share_what_they_overlap(tmp_path):
    first, second = np.array([[1.0, 1.0, 0.25, 0.0]]), np.array([[0.0, 1.0, 0.5, 0.0]])
    regions = read_regions([saved(tmp_path / "sky.png", first), second], "regions")
    layers = regions.layers[:, 0, 0].tolist()
    assert layers[0] == pytest.approx([1.0, 0.5, 0.25, 0.0], abs=0.5 / 255)
    assert layers[1] == pytest.approx([0.0, 0.5, 0.5, 0.0])
    assert (regions.names, regions.soft) == (("sky", "2"), True)
    assert regions.uncovered == pytest.approx(1.25 / 4, abs=0.5 / 255)
    saved(tmp_path / "ground.png", second)
    (tmp_path / "notes.txt").write_text("sky first")
    folder = read_regions(tmp_path, "content_regions")
    assert (folder.soft, folder.names, folder.source) == (True, ("ground", "sky"), str(tmp_path))
    for mask in (first, torch.from_numpy(first)):
        assert read_regions(mask, "regions").soft
    assert not read_regions(torch.ones(3, 9, 9), "regions").soft


def test_masks_that_do_not_fit_are_refused_by_name(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "empty").mkdir()
    a, b = saved(tmp_path / "a.png", RAMP), saved(tmp_path / "b.png", RAMP[::2, ::2])
    black = saved(tmp_path / "black.png", np.zeros((10, 16)))
    refusals = [
        ([a, b], "^regions: mask a has 16 x 10 pixels and b 8 x 5; masks of one"),
        ([a, saved(tmp_path / "other" / "a.png", RAMP)], "two masks are called a; rename one"),
        ([], "^regions lists no mask"),
        (tmp_path / "empty", "no picture in .*; put one grey mask per region there"),
        ([a, black], r"black\.png is an empty mask; paint white"),
    ]
    for masks, message in refusals:
        check_error(message, read_regions, masks, "regions")
    with pytest.raises(UserError, match=r"^protect is a colour picture; a mask is grey"):
        read_mask(stripes([(133, 100, 100)]), "protect")
    assert read_mask(stripes([(131, 100, 100)]), "protect").mean() > 0.4
