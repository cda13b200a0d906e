"""Reading label pictures and masks, and the pictures that are refused."""

import io

import numpy as np
import pytest
import torch
from helpers import ROOT, check_error
from PIL import Image, ImageDraw

from styletransfer.errors import UserError
from styletransfer.pictures import images
from styletransfer.pictures.labels import read_regions
from styletransfer.pictures.masks import read_mask

RED, BLUE, GREEN, WHITE = (255, 0, 0), (0, 0, 255), (0, 128, 0), (255, 255, 255)
COLORS = [WHITE, RED, BLUE, GREEN]
RAMP = np.tile(np.linspace(0, 1, 16, dtype=np.float32), (10, 1))


def drawn(scale=1):
    """Return an image (128, 192) times `scale`: a disc of each other colour on a white ground."""
    image = Image.new("RGB", (192 * scale, 128 * scale), WHITE)
    draw, step = ImageDraw.Draw(image), 48 * scale
    for place, color in enumerate(COLORS[1:], start=1):
        x, y, r = place * step, 128 * scale * (0.3 + 0.4 * (place % 2)), 0.6 * step
        draw.ellipse((x - r, y - r, x + r, y + r), fill=color)
    return image


def disagreement(regions, truth):
    """Return the share of pixels whose region differs from the colour in `truth`."""
    pixels = np.asarray(truth)
    wrong = np.zeros(pixels.shape[:2], bool)
    for color in COLORS:
        labels = regions.labels.numpy() == regions.find(f"rgb{color}")
        wrong |= labels != (pixels == np.array(color)).all(2)
    return wrong.mean()


def stripes(colors, width=4):
    return np.tile(np.repeat(np.array(colors, np.uint8), width, axis=0), (12, 1, 1))


def test_a_clean_picture_is_taken_pixel_by_pixel(tmp_path):
    image, path = drawn(), tmp_path / "labels.png"
    image.save(path)
    regions = read_regions(str(path), "content_regions")
    assert regions.names == ("white", "red", "green", "blue")  # largest first
    assert (regions.source, regions.size) == (str(path), (128, 192))
    assert regions.shares == [(regions.labels == n).double().mean().item() for n in range(4)]
    assert sum(regions.shares) == 1
    for same in (image, image.quantize(4), image.convert("RGBA")):
        assert disagreement(read_regions(same, "labels"), image) == 0.0
    many = [(red, green, 0) for red in (0, 90, 180, 255) for green in (0, 90, 180, 255)]
    assert len(read_regions(stripes(many[:12]), "labels").names) == 12
    with pytest.raises(UserError, match=r"^labels shows 13 flat colours; is it a photograph"):
        read_regions(stripes(many[:13]), "labels")


def test_other_colours_take_the_nearest_region():
    pixels = stripes([WHITE, RED], 15)
    pixels[:, 15] = (255, 120, 120)  # nearer to red
    pixels[2, 2], pixels[3, 2], pixels[4, 2] = (255, 223, 255), (223, 223, 223), (222, 255, 255)
    regions = read_regions(pixels, "labels")
    assert regions.names == ("white", "red")
    assert (regions.labels == 1).sum() == 12 * 15
    assert (regions.labels[2:5, 2] == 0).all()
    pixels = np.zeros((12, 20, 4), np.uint8)
    pixels[:, :10] = (*RED, 255)
    pixels[:6, 10:15] = (*BLUE, 128)
    pixels[6:, 10:15] = (*GREEN, 127)
    regions = read_regions(pixels, "labels")
    assert set(regions.names) == {"red", "blue"}
    assert sum(regions.shares) == pytest.approx(0.5 + 0.125)
    assert (regions.labels[6:, 10:] == -1).all()
    with pytest.raises(UserError, match="transparent everywhere; paint"):
        read_regions(np.zeros((9, 9, 4), np.uint8), "labels")


def test_blurred_label_edges_take_the_nearest_colour():
    for quality in (50, 95):
        buffer = io.BytesIO()
        drawn(scale=4).resize((192, 128)).save(buffer, "JPEG", quality=quality)
        regions = read_regions(Image.open(buffer), "labels")
        assert len(regions.names) == 4
        assert disagreement(regions, drawn()) < 0.03


def test_label_pictures_that_are_nowhere_flat_are_refused():
    for name in ("coffee", "rocket", "astronaut", "chelsea"):
        photo = Image.open(ROOT / "assets" / "content" / f"{name}.jpg")
        photo.thumbnail((320, 320))
        check_error("is it a photograph", read_regions, photo, "labels")
    shade = np.tile(np.linspace(0, 1, 200, dtype=np.float32)[None, :, None], (100, 1, 3))
    noise = np.random.default_rng(0).random((50, 50, 3), np.float32)
    for source in (shade, noise):
        check_error(r"flat colours; is it a photograph\? .* as PNG", read_regions, source, "labels")


def saved(path, grey):
    """Write floats (H, W) in [0, 1] as a grey picture; return the path."""
    images.write(path, torch.as_tensor(grey, dtype=torch.float32).expand(1, 3, *grey.shape))
    return path


def test_soft_edges_of_masks_are_kept_whatever_they_are_given_as(tmp_path):
    levels, tensor = np.round(RAMP * 255).astype(np.uint8), torch.from_numpy(RAMP)
    files = [Image.fromarray(levels), levels, saved(tmp_path / "a.png", RAMP)]
    whole = [levels.astype(np.int64), torch.from_numpy(levels)]
    axes = [
        RAMP[None],
        RAMP[None, None],
        RAMP[..., None],
        tensor[None],
        tensor.double()[None, None],
    ]
    for source in (RAMP, tensor, *files, *whole, *axes):
        mask = read_mask(source, "protect")
        assert mask.shape == (1, 1, 10, 16)
        assert (mask[0, 0] - torch.from_numpy(RAMP)).abs().max() <= 0.5 / 255 + 1e-6
    for mask in (RAMP > 0.5, (RAMP > 0.5)[None], tensor[None] > 0.5):
        assert torch.equal(read_mask(mask, "protect")[0, 0], (tensor > 0.5).float())
    pixels = np.full((4, 6, 4), 255, np.uint8)
    pixels[:, 3:, 3] = 51
    assert read_mask(pixels, "protect")[0, 0, 0].tolist() == pytest.approx([1.0] * 3 + [0.2] * 3)
    assert read_mask(np.full((4, 6), 0.51 / 255), "protect").max() > 0
    for grey in (0.49 / 255, 0.0):
        check_error(r"^protect is an empty mask", read_mask, np.full((4, 6), grey), "protect")


def test_a_mask_of_colours_is_refused():
    with pytest.raises(UserError, match=r"^protect is a colour picture; a mask is grey"):
        read_mask(stripes([(133, 100, 100)]), "protect")
    assert read_mask(stripes([(131, 100, 100)]), "protect").mean() > 0.4
