"""Regions: weights at other sizes, names, pairs and styles; rotated pictures."""

import math

import numpy as np
import pytest
import torch
from helpers import check_error, picture
from hydra.core.override_parser.overrides_parser import OverridesParser

from styletransfer.errors import UserError
from styletransfer.pictures.images import Picture
from styletransfer.pictures.labels import read_regions
from styletransfer.pictures.masks import check_aspect
from styletransfer.pictures.regions import Regions, assign, pair_regions
from styletransfer.pictures.rotate import inner_size, rotated

RED, BLUE, GREEN = (255, 0, 0), (0, 0, 255), (0, 128, 0)
PALETTE = (RED, BLUE, GREEN, (255, 255, 0), (0, 255, 255), (255, 0, 255))


def stripes(*colors, name="labels"):
    """Return regions that are vertical stripes of equal width, one per colour."""
    row = np.repeat(np.array(colors, np.uint8), 6, axis=0)
    return read_regions(np.tile(row, (9, 1, 1)), name)


def painted(numbers):
    """Return regions whose labels are `numbers`, from 0 to 5, with the colours of PALETTE."""
    colors = PALETTE[: numbers.max() + 1]
    return Regions(torch.as_tensor(numbers), colors, "labels")


def test_weights_are_averages_over_the_area_of_a_pixel():
    # Every fourth row is in the region, so at a quarter of the height each weight is 1/4.
    numbers = np.tile(np.array([[0], [1], [1], [1]]), (10, 8))
    weights = painted(numbers).weights(0, (10, 4))
    assert (weights[..., 2:-2, :] - 0.25).abs().max() < 0.02

    # The weights of all regions sum to 1 at every size.
    regions = painted(np.random.default_rng(0).integers(0, 3, (13, 17)))
    for size in ((1, 1), (5, 40), (13, 17), (33, 29)):
        weights = torch.cat([regions.weights(n, size) for n in range(len(regions.names))])
        assert (weights.shape[1:], weights.dtype) == ((1, *size), torch.float32)
        assert (weights.sum(0) - 1.0).abs().max() < 1e-5
        assert 0.0 <= weights.min() <= weights.max() <= 1.0


def test_masks_have_the_aspect_ratio_of_their_picture():
    for size, shown in (((667, 1000), (341, 512)), ((50, 49), (50, 50))):
        check_aspect(size, shown, "labels.png")
    for size, shown in (((512, 341), (341, 512)), ((50, 48), (50, 50))):
        message = f"^labels.png has {size[1]} x {size[0]} pixels .* another"
        check_error(message, check_aspect, size, shown, "labels.png")


def test_regions_are_named_by_css_if_their_colour_has_a_name():
    named = stripes((0, 255, 255), (65, 105, 225), (128, 128, 128), (239, 0, 16))
    assert set(named.names) == {"cyan", "royalblue", "grey", "#ef0010"}


def test_a_region_is_found_by_its_name_or_a_colour_near_to_it():
    regions = stripes(BLUE, RED)
    texts = ("red", "RED", " #ff0000", "0xfa0508", "fa0508", "rgb(223,32,32)", "hsl(0, 100%, 50%)")
    for text in texts:
        assert regions.names[regions.find(text)] == "red", text
    for text in ("sky", "yellow", "", "1", "rgb(222, 0, 0)", "rgb(999,0,0)"):
        check_error(r"^labels has no region .*; it has (blue|red) \(50 %", regions.find, text)


def test_regions_pair_by_colours_nearly_the_same():
    content = stripes(RED, BLUE, GREEN)
    style = stripes((2, 126, 3), (223, 4, 1), (0, 2, 250), name="style")  # 32 levels from red
    (pairs,) = pair_regions(content, [style])
    by_color = {content.colors[n]: style.colors[index] for n, index in enumerate(pairs)}
    assert by_color == {RED: (223, 4, 1), BLUE: (0, 2, 250), GREEN: (2, 126, 3)}
    with pytest.raises(UserError, match=r"has the region red .* and style has only #de0000"):
        pair_regions(stripes(RED), [stripes((222, 0, 0), name="style")])


def test_a_region_that_no_style_has_is_refused():
    two, more = stripes(RED, BLUE), stripes(RED, BLUE, GREEN, name="more")
    lacking = r"^more has the region green \(33 %\), and labels has only .*50 %\); give both"
    check_error(lacking, pair_regions, more, [two])
    ((blue, red),) = pair_regions(two, [more])  # the style's third region is not used
    assert {more.names[blue], more.names[red]} == {"red", "blue"}
    several = [stripes(RED, name="a"), stripes(GREEN, RED, name="b")]
    message = r"region blue .* a has only red .* b has only .*green"
    check_error(message, pair_regions, more, several)


def test_regions_get_their_styles_by_a_mapping_that_fits():
    regions = stripes(RED, BLUE, GREEN)
    chosen = assign(regions, {"#0000ff": 2, "red": 1, "green": 2}, 2)
    assert dict(zip(regions.names, chosen, strict=True)) == {"red": 0, "blue": 1, "green": 1}
    assert assign(regions, {}, 1) == [0, 0, 0]
    for mapping, message in (
        ({"red": 1, "yellow": 2}, "^labels has no region 'yellow'; it has"),
        ({"red": 1}, r"^labels has the regions .*; say which takes which, such as"),
        ({"red": 1, "blue": 3}, "^region_styles gives blue the style 3; styles are .* 1 to 2"),
        ({"red": 0, "blue": 1}, "^region_styles gives red the style 0"),
        ({"red": 1, "ff0000": 2, "blue": 1}, "^region_styles names red twice"),
    ):
        check_error(message, assign, stripes(RED, BLUE), mapping, 2)


def test_a_missing_mapping_is_asked_for_with_the_very_argument():
    """The argument in the error message is valid and gives each region a style."""
    regions = stripes(RED, BLUE, (0x1E, 0x10, 0xA0))
    with pytest.raises(UserError, match="there are 2 styles; say which takes which") as caught:
        assign(regions, {}, 2)
    assert regions.listed() in str(caught.value)
    argument = str(caught.value).split("'")[1]
    mapping = OverridesParser.create().parse_override(argument).value()
    assert sorted(assign(regions, mapping, 2)) == [0, 0, 1]


def test_quarters_only_move_pixels():
    image, alpha = picture(0, 20, 30), picture(1, 20, 30)[:, :1]
    for degrees, quarters in ((0, 0), (90, 1), (-90, 3), (180, 2), (630, 3)):
        turned = rotated(Picture(image, alpha), degrees)
        assert torch.equal(turned.rgb, torch.rot90(image, quarters, (2, 3)))
        assert torch.equal(turned.alpha, torch.rot90(alpha, quarters, (2, 3)))
        assert torch.equal(rotated(Picture(image), degrees).rgb, turned.rgb)


def test_a_plane_is_rotated_counterclockwise():
    """Bicubic resampling keeps a linear gradient, so every value is known."""
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


def test_the_largest_rectangle_inside_a_rotated_picture():
    """A rectangle with a slightly larger area does not fit inside at any aspect ratio."""

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
