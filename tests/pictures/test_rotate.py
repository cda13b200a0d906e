"""Turned pictures: exact by quarters, cut so that no corner is empty, regions with them."""

import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from styletransfer.pictures.masks import read_masks

from styletransfer.errors import UserError
from styletransfer.pictures.images import Picture
from styletransfer.pictures.labels import read_labels
from styletransfer.pictures.rotate import inner_size, rotated, rotated_regions

ANGLES = st.floats(-720, 720)


def noise(height=20, width=30):
    generator = torch.Generator().manual_seed(0)
    return torch.rand(1, 3, height, width, generator=generator)


def corners(size):
    """Corners (x, y) of a rectangle around the origin."""
    height, width = size
    return np.array([(x, y) for x in (-width / 2, width / 2) for y in (-height / 2, height / 2)])


def fits(inner, outer, degrees):
    """Whether an upright rectangle lies in one that is turned."""
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    back = corners(inner) @ np.array([[c, -s], [s, c]])
    return bool((np.abs(back) <= np.array([outer[1], outer[0]]) / 2 + 1e-5).all())


@pytest.mark.parametrize(("degrees", "quarters"), [(0, 0), (90, 1), (-90, 3), (180, 2), (630, 3)])
def test_quarters_only_move_pixels(degrees, quarters):
    image, alpha = noise(), noise()[:, :1]
    turned = rotated(Picture(image, alpha), degrees)
    assert torch.equal(turned.rgb, torch.rot90(image, quarters, (2, 3)))
    assert turned.alpha is not None
    assert torch.equal(turned.alpha, torch.rot90(alpha, quarters, (2, 3)))


@pytest.mark.parametrize("degrees", [30, -75, 135, 200.5])
def test_turning_is_counterclockwise(degrees):
    """A smooth spot right of the centre goes up for a quarter of a turn, as in mathematics."""
    y, x = torch.meshgrid(torch.arange(101) - 50.0, torch.arange(101) - 50.0, indexing="ij")
    spot = torch.exp(-((x - 20) ** 2 + y**2) / 40)
    turned = rotated(Picture(spot.expand(1, 3, 101, 101)), degrees).rgb[0, 0]
    height, width = turned.shape
    found = turned.argmax()
    row, column = found // width - (height - 1) / 2, found % width - (width - 1) / 2
    radians = math.radians(degrees)
    assert column == pytest.approx(20 * math.cos(radians), abs=1)
    assert -row == pytest.approx(20 * math.sin(radians), abs=1)


def test_values_between_pixels_are_those_of_the_plane():
    """Bicubic resampling keeps a linear shade, so every value is known."""
    y, x = torch.meshgrid(torch.arange(40) - 19.5, torch.arange(60) - 29.5, indexing="ij")
    turned = rotated(Picture((0.5 + x / 200 + y / 300).expand(1, 3, 40, 60)), 20).rgb[0, 0]
    height, width = turned.shape
    v, u = torch.meshgrid(
        torch.arange(height) - (height - 1) / 2,
        torch.arange(width) - (width - 1) / 2,
        indexing="ij",
    )
    c, s = math.cos(math.radians(20)), math.sin(math.radians(20))
    expected = 0.5 + (u * c - v * s) / 200 + (u * s + v * c) / 300
    torch.testing.assert_close(turned[2:-2, 2:-2], expected[2:-2, 2:-2].float(), atol=2e-3, rtol=0)


@given(st.integers(8, 300), st.integers(8, 300), ANGLES)
@settings(max_examples=200)
def test_the_cut_rectangle_lies_inside_the_turned_picture(height, width, degrees):
    inner = inner_size((height, width), degrees)
    assert fits(inner, (height, width), degrees)


@given(st.integers(20, 300), st.integers(20, 300), ANGLES, st.floats(0.1, 10))
@settings(max_examples=200)
def test_no_larger_rectangle_does(height, width, degrees, ratio):
    """Whatever its aspect ratio, one of the area plus what rounding took sticks out."""
    inner = inner_size((height, width), degrees)
    assume(min(inner) >= 1)
    area = (inner[0] + 1) * (inner[1] + 1)
    larger = math.sqrt(area * ratio), math.sqrt(area / ratio)
    assert not fits(larger, (height - 1e-3, width - 1e-3), degrees)


def test_no_corner_comes_in():
    """A white picture stays white to its last pixel."""
    turned = rotated(Picture(torch.ones(1, 3, 40, 60)), 33.0)
    assert turned.size == inner_size((40, 60), 33.0)
    torch.testing.assert_close(turned.rgb, torch.ones_like(turned.rgb))


def test_hidden_colours_do_not_bleed():
    rgb, alpha = torch.zeros(1, 3, 40, 40), torch.zeros(1, 1, 40, 40)
    rgb[:, 0], alpha[:, :, 10:30, 10:30] = 1.0, 1.0
    rgb[:, 1] = 1.0 - alpha[:, 0]
    turned = rotated(Picture(rgb, alpha), 10.0)
    assert turned.alpha is not None
    visible = turned.alpha[0, 0] > 0.05
    assert turned.rgb[0, 1][visible].max() < 1e-3
    assert turned.rgb[0, 0][visible].min() > 0.99


@pytest.mark.parametrize("degrees", [45.0, 44.0])
def test_too_small_a_rest_is_refused(degrees):
    with pytest.raises(UserError, match=r"oil\.jpg, turned by .* degrees, leaves .* at least 8"):
        rotated(Picture(noise(10, 200), name="oil.jpg"), degrees)


@pytest.mark.parametrize("degrees", [math.nan, math.inf])
def test_an_angle_is_a_number(degrees):
    with pytest.raises(UserError, match=r"cannot be turned by (nan|inf) degrees"):
        rotated(Picture(noise()), degrees)


def quadrants(height, width):
    rows, columns = np.arange(height) * 2 // height, np.arange(width) * 2 // width
    return rows[:, None] * 2 + columns


@pytest.mark.parametrize("degrees", [25.0, -60.0, 90.0])
def test_regions_turn_with_their_picture(degrees):
    numbers = quadrants(60, 80)
    picture = Picture(torch.from_numpy(numbers / 3.0).float().expand(1, 3, 60, 80))
    turned = rotated(picture, degrees)
    regions = rotated_regions(read_labels(numbers, "labels"), degrees)
    assert regions.size == turned.size
    assert torch.equal(regions.layers.sum(0), torch.ones(1, *turned.size, dtype=torch.int64))
    labels = regions.layers[:, 0].int().argmax(0) / 3.0
    assert ((turned.rgb[0, 0] - labels).abs() < 0.1).float().mean() > 0.9


def test_masks_turn_softly_and_still_sum_to_one():
    ramp = np.tile(np.linspace(0, 1, 40, dtype=np.float32), (30, 1))
    regions = rotated_regions(read_masks([ramp, 1 - ramp], "masks"), 15.0)
    assert regions.size == inner_size((30, 40), 15.0)
    torch.testing.assert_close(
        regions.layers.sum(0), torch.ones(1, *regions.size), atol=1e-5, rtol=0
    )
    assert 0.3 < float(regions.layers[0].mean()) < 0.7


def test_a_region_that_is_cut_off_is_named():
    numbers = np.zeros((40, 40), int)
    numbers[0, 0] = 5
    with pytest.raises(UserError, match="left of the region 5 once it is turned by 45 degrees"):
        rotated_regions(read_labels(numbers, "labels"), 45.0)
