"""Turned pictures: exact by quarters, cut so that no corner is empty, regions with them."""

import math

import numpy as np
import pytest
import torch

from styletransfer.errors import UserError
from styletransfer.pictures.images import Picture
from styletransfer.pictures.labels import read_regions
from styletransfer.pictures.rotate import inner_size, rotated, rotated_regions


def noise(height=20, width=30):
    return torch.rand(1, 3, height, width, generator=torch.Generator().manual_seed(0))


def test_quarters_only_move_pixels():
    image, alpha = noise(), noise()[:, :1]
    numbers = np.arange(6).reshape(2, 3)  # smaller than what other angles must leave
    for degrees, quarters in ((0, 0), (90, 1), (-90, 3), (180, 2), (630, 3)):
        turned = rotated(Picture(image, alpha), degrees)
        assert torch.equal(turned.rgb, torch.rot90(image, quarters, (2, 3)))
        assert torch.equal(turned.alpha, torch.rot90(alpha, quarters, (2, 3)))
        assert torch.equal(rotated(Picture(image), degrees).rgb, turned.rgb)
        regions = rotated_regions(read_regions(numbers, "labels"), degrees)
        assert np.array_equal(regions.layers[:, 0].int().argmax(0), np.rot90(numbers, quarters))


def test_values_between_pixels_are_those_of_the_plane_turned_counterclockwise():
    """Bicubic resampling keeps a linear shade, so every value is known."""
    y, x = torch.meshgrid(torch.arange(40) - 19.5, torch.arange(60) - 29.5, indexing="ij")
    plane = Picture((0.5 + x / 200 + y / 300).expand(1, 3, 40, 60))
    for degrees in (20, -75, 135, 200.5):
        turned = rotated(plane, degrees).rgb[0, 0]
        height, width = turned.shape
        assert (height, width) == inner_size((40, 60), degrees)
        v = (torch.arange(height) - (height - 1) / 2)[:, None]
        u = (torch.arange(width) - (width - 1) / 2)[None]
        c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
        expected = 0.5 + (u * c - v * s) / 200 + (u * s + v * c) / 300
        assert (turned - expected)[2:-2, 2:-2].abs().max() < 2e-3


def test_the_cut_rectangle_is_the_largest_inside_the_turned_picture():
    """Whatever its aspect ratio, one of the area plus what rounding took sticks out."""

    def fits(inner, outer, degrees):
        (height, width), angle = inner, math.radians(degrees)
        c, s = abs(math.cos(angle)), abs(math.sin(angle))
        turned = np.array([height * c + width * s, width * c + height * s])
        return bool((turned <= np.array(outer) + 2e-5).all())

    rng = np.random.default_rng(0)
    for height, width in rng.integers(20, 300, (60, 2)).tolist():
        degrees, ratio = rng.uniform(-720, 720), rng.uniform(0.1, 10)
        inner = inner_size((height, width), degrees)
        assert fits(inner, (height, width), degrees)
        area = (inner[0] + 1) * (inner[1] + 1)
        larger = math.sqrt(area * ratio), math.sqrt(area / ratio)
        assert not fits(larger, (height - 1e-3, width - 1e-3), degrees)


def test_no_corner_and_no_hidden_colour_comes_in():
    turned = rotated(Picture(torch.ones(1, 3, 40, 60)), 33.0)
    assert (turned.rgb - 1.0).abs().max() < 1e-5
    rgb, alpha = torch.zeros(1, 3, 40, 40), torch.zeros(1, 1, 40, 40)
    rgb[:, 0], alpha[:, :, 10:30, 10:30] = 1.0, 1.0
    rgb[:, 1] = 1.0 - alpha[:, 0]
    turned = rotated(Picture(rgb, alpha), 10.0)
    visible = turned.alpha[0, 0] > 0.05
    assert turned.rgb[0, 1][visible].max() < 1e-3
    assert turned.rgb[0, 0][visible].min() > 0.99


def test_what_cannot_be_turned_is_refused():
    with pytest.raises(UserError, match=r"oil\.jpg, turned by 45 degrees, leaves .* at least 8"):
        rotated(Picture(noise(10, 200), name="oil.jpg"), 45.0)
    for degrees in (math.nan, math.inf):
        with pytest.raises(UserError, match=r"cannot be turned by (nan|inf) degrees"):
            rotated(Picture(noise()), degrees)
    numbers = np.zeros((40, 40), int)
    numbers[0, 0] = 5
    with pytest.raises(UserError, match="left of the region 5 once it is turned by 45 degrees"):
        rotated_regions(read_regions(numbers, "labels"), 45.0)


def test_regions_turn_with_their_picture_each_pixel_in_one():
    """The labels are single columns: resampled otherwise, none would have more than a half."""
    rows = np.arange(60)[:, None] * 2 // 60
    numbers = rows * 3 + np.arange(80) % 3
    regions = rotated_regions(read_regions(numbers, "labels"), -60.0)
    assert regions.layers.dtype == torch.bool
    assert torch.equal(regions.layers.sum(0), torch.ones(1, *regions.size, dtype=torch.int64))
    below = torch.tensor(rows / 1.0).float().expand(1, 3, 60, 80)
    turned = rotated(Picture(below), -60.0)
    assert regions.size == turned.size
    lower = regions.layers[3:, 0].any(0)
    assert ((turned.rgb[0, 0] > 0.5) == lower).float().mean() > 0.98


def test_masks_turn_softly_and_still_sum_to_one():
    ramp = np.tile(np.linspace(0, 1, 40, dtype=np.float32), (30, 1))
    regions = rotated_regions(read_regions([ramp, 1 - ramp], "masks"), 15.0)
    assert regions.size == inner_size((30, 40), 15.0)
    assert (regions.layers.sum(0) - 1.0).abs().max() < 1e-5
    assert len(regions.layers[0].unique()) > 100
