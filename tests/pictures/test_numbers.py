"""Masks of 0 and 1 and labels of 0, 1, 2, ..., as segmentation networks return and save them."""

import imagecodecs
import numpy as np
import tifffile
import torch
from helpers import check_error
from PIL import Image

from styletransfer.pictures.labels import read_regions
from styletransfer.pictures.masks import read_mask

HALF = np.zeros((12, 16), np.uint8)
HALF[:, 8:] = 1
THREE = np.repeat(np.array([[0, 1, 2]], np.uint8), 5, axis=1).repeat(9, axis=0)


def files(folder, numbers):
    """Return the paths of all files that hold the numbers (H, W) as they are."""
    folder.mkdir()
    Image.fromarray(numbers).save(folder / "8.png")
    Image.fromarray(numbers.repeat(3).reshape(*numbers.shape, 3)).save(folder / "rgb.png")
    (folder / "16.png").write_bytes(imagecodecs.png_encode(numbers.astype(np.uint16)))
    options = {"photometric": "minisblack", "metadata": None}
    tifffile.imwrite(folder / "8.tif", numbers, **options)
    tifffile.imwrite(folder / "16.tif", numbers.astype(np.uint16), **options)
    Image.fromarray(numbers).save(folder / "a.webp", lossless=True)
    Image.fromarray(numbers).save(folder / "a.bmp")
    paletted = Image.fromarray(numbers, "L").convert("P")
    paletted.putpalette(np.arange(256).repeat(3).astype(np.uint8).tobytes())
    paletted.save(folder / "palette.png")
    return [*map(str, sorted(folder.iterdir()))]


def in_memory(numbers):
    """Return arrays, tensors and an image that hold the numbers (H, W) as they are."""
    kinds = (np.uint8, np.int8, np.int32, np.int64, np.uint16)
    arrays = [numbers.astype(kind) for kind in kinds]
    arrays += [numbers[None], numbers[None, None].astype(np.int64), numbers[..., None]]
    integers = (torch.uint8, torch.int32, torch.int64)
    tensors = [torch.from_numpy(numbers).to(kind) for kind in integers]
    tensors += [tensors[0][None], tensors[2][None, None]]
    return [*arrays, *tensors, Image.fromarray(numbers)]


def test_a_mask_of_0_and_1_covers_what_is_1(tmp_path):
    expected = torch.from_numpy(HALF).float()[None, None]
    for source in (*files(tmp_path / "masks", HALF), *in_memory(HALF)):
        assert torch.equal(read_mask(source, "protect"), expected), source
    ones = np.ones((12, 16), np.int64)
    assert read_mask(ones, "protect").unique().tolist() == [1.0]


def test_numbers_of_regions_are_no_mask(tmp_path):
    message = r"holds small numbers only .*; a mask is 0 and 255, or 0 and 1"
    for source in (*files(tmp_path / "labels", THREE), *in_memory(THREE), *in_memory(HALF * 11)):
        check_error(message, read_mask, source, "protect")
    check_error("is an empty mask", read_mask, HALF * 0, "protect")
    check_error("protect is an array of int64", read_mask, HALF.astype(np.int64) - 1, "protect")


def test_labels_of_small_numbers_are_regions(tmp_path):
    for numbers, names in ((THREE, ("black", "maroon", "green")), (HALF, ("black", "maroon"))):
        for source in (*files(tmp_path / str(len(names)), numbers), *in_memory(numbers)):
            regions = read_regions(source, "labels")
            assert regions.names == names, source
            assert regions.labels.tolist() == numbers.tolist(), source
    assert set(read_regions(HALF > 0, "labels").names) == {"black", "white"}


def test_numbers_have_the_colours_of_pascal_voc():
    numbers = np.arange(12, dtype=np.uint8)[None].repeat(6, 0).repeat(6, 1)
    names = "black maroon green olive navy purple teal grey #400000 #c00000 #408000 #c08000"
    assert set(read_regions(numbers, "labels").names) == {*names.split()}
    edges = np.array([[0, 15, 255]], np.uint8).repeat(6, 0).repeat(6, 1)
    assert set(read_regions(edges, "labels").names) == {"black", "#c08080", "#e0e0c0"}
    assert read_regions(np.full((9, 9), 15, np.uint8), "labels").names == ("#c08080",)


def test_a_number_is_a_region_however_rare_it_is():
    numbers = np.zeros((200, 200), np.uint8)
    numbers[50, 50] = 3
    regions = read_regions(numbers, "labels")
    assert regions.names == ("black", "olive")
    assert (regions.labels == 1).nonzero().tolist() == [[50, 50]]


def test_transparent_pixels_have_no_number():
    pixels = np.stack([THREE, np.where(THREE == 2, 0, 255).astype(np.uint8)], axis=2)
    regions = read_regions(Image.fromarray(pixels, "LA"), "labels")
    assert regions.names == ("black", "maroon")
    assert (regions.labels == -1).sum() == (THREE == 2).sum()


def test_labels_that_would_be_one_region_are_refused():
    many = np.arange(19, dtype=np.uint8)[None].repeat(6, 0).repeat(6, 1)
    message = r"holds 19 numbers of regions, up to 18; .* at most 12"
    check_error(message, read_regions, many, "labels")
    near = np.array([[70, 80, 200]], np.uint8).repeat(6, 0).repeat(6, 1)
    check_error(r"has the greys 70 and 80, less than 33 levels", read_regions, near, "labels")
    check_error("labels is an array of int64", read_regions, near.astype(np.int64) + 200, "labels")


def test_greys_far_apart_stay_colours():
    greys = np.array([[0, 128, 255]], np.uint8).repeat(6, 0).repeat(6, 1)
    for source in (greys, greys.astype(np.int64), greys[None], torch.from_numpy(greys)):
        assert set(read_regions(source, "labels").names) == {"black", "grey", "white"}
