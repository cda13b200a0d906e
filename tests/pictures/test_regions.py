"""Regions: their weights at other sizes, what people call them, and who gets which style."""

import numpy as np
import pytest
import torch
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from styletransfer.pictures.masks import read_masks

from styletransfer.errors import UserError
from styletransfer.pictures.labels import read_labels
from styletransfer.pictures.pairing import assign, pair_regions, read_regions
from styletransfer.pictures.regions import check_aspect

RED, BLUE, GREEN = (255, 0, 0), (0, 0, 255), (0, 128, 0)


def stripes(*colors, name="labels"):
    """Upright stripes of equal widths."""
    row = np.repeat(np.array(colors, np.uint8), 6, axis=0)
    return read_labels(np.tile(row, (9, 1, 1)), name)


def halves(height=8, width=12):
    mask = np.zeros((height, width), np.float32)
    mask[:, : width // 2] = 1.0
    return mask


# Weights


def test_weights_at_the_same_size_are_the_layer_itself():
    regions = stripes(RED, BLUE)
    weights = regions.weights(regions.find("red"), (9, 12))
    assert weights.dtype == torch.float32
    assert weights.shape == (1, 1, 9, 12)
    assert weights[0, 0, 0].tolist() == [1.0] * 6 + [0.0] * 6


def test_weights_are_averages_over_the_area_of_a_pixel():
    """Every fourth row is in the region: at a quarter of the height each pixel is a quarter."""
    numbers = np.tile(np.array([[0], [1], [1], [1]]), (10, 8))
    weights = read_labels(numbers, "labels").weights(0, (10, 4))
    torch.testing.assert_close(
        weights[..., 2:-2, :], torch.full((1, 1, 6, 4), 0.25), atol=0.02, rtol=0
    )


@given(
    st.integers(1, 40),
    st.integers(1, 40),
    st.integers(0, 2**32 - 1),
    st.booleans(),
)
@settings(max_examples=40)
def test_weights_of_all_regions_sum_to_one_at_every_size(height, width, seed, soft):
    rng = np.random.default_rng(seed)
    regions = read_labels(rng.integers(0, 3, (13, 17)), "labels")
    if soft:
        first = rng.random((13, 17), np.float32)
        regions = read_masks([first, 1 - first], "masks")
    every = [regions.weights(number, (height, width)) for number in range(len(regions.names))]
    torch.testing.assert_close(sum(every), torch.ones(1, 1, height, width), atol=1e-5, rtol=0)
    assert all(0.0 <= weights.min() <= weights.max() <= 1.0 for weights in every)


def test_where_no_region_is_no_weight_comes_up():
    regions = read_masks([halves() * 0.5], "masks")
    assert regions.uncovered == 0.75
    weights = regions.weights(0, (4, 6))
    assert weights[..., 4:].max() == 0.0
    assert weights.max() == 0.5


def test_a_cut_keeps_what_lies_in_the_box():
    """Of a label picture half as large as its picture."""
    numbers = np.zeros((10, 20), int)
    numbers[2:6, 5:] = 1
    numbers[4, 7] = 2
    cut = read_labels(numbers, "labels").cut((slice(4, 11), slice(9, 29)), (20, 40))
    assert cut.size == (4, 11)
    assert torch.equal(cut.layers[0, 0], torch.from_numpy(numbers[2:6, 4:15] == 0))
    assert torch.equal(cut.layers[2, 0], torch.from_numpy(numbers[2:6, 4:15] == 2))


def test_a_region_outside_the_box_is_named():
    regions = stripes(RED, BLUE)
    with pytest.raises(UserError, match="labels: nothing is left of the region red once"):
        regions.cut((slice(0, 9), slice(8, 12)), (9, 12))


# Names


@pytest.mark.parametrize(
    "text", ["red", "RED", " #ff0000", "ff0000", "0xfa0508", "(255,0,0)", "(200, 20, 20)"]
)
def test_a_region_is_found_by_its_name_or_a_colour_near_to_it(text):
    regions = stripes(BLUE, RED, GREEN)
    assert regions.names[regions.find(text)] == "red"


@pytest.mark.parametrize("text", ["sky", "yellow", "", "1"])
def test_an_unknown_region_is_refused_with_those_there_are(text):
    with pytest.raises(
        UserError, match=r"^labels has no region .*; it has (red|blue) \(50 %\) and"
    ):
        stripes(RED, BLUE).find(text)


def test_numbers_and_masks_are_found_by_name_only():
    numbers = read_labels(np.array([[0, 3], [3, 3]]), "labels")
    assert numbers.find("3") == 1
    masks = read_masks([halves(), 1 - halves()], "masks")
    assert masks.find("2") == 1
    with pytest.raises(UserError, match="no region 'red'"):
        masks.find("red")


# Aspect ratio


@pytest.mark.parametrize(
    ("size", "picture"),
    [
        ((341, 512), (341, 512)),
        ((667, 1000), (341, 512)),
        ((33, 50), (667, 1000)),
        ((1000, 667), (50, 33)),
        ((600, 400), (602, 400)),
    ],
)
def test_rounded_sizes_have_the_same_aspect_ratio(size, picture):
    check_aspect(size, picture, "labels.png")


@pytest.mark.parametrize(
    ("size", "picture"),
    [((512, 512), (341, 512)), ((512, 341), (341, 512)), ((330, 512), (341, 512))],
)
def test_another_aspect_ratio_is_refused_with_both_sizes(size, picture):
    message = (
        f"^labels.png has {size[1]} x {size[0]} pixels .* {picture[1]} x {picture[0]}: another"
    )
    with pytest.raises(UserError, match=message):
        check_aspect(size, picture, "labels.png")


# Pairs of content and style


def test_regions_of_one_colour_pair_whatever_their_order_and_jpeg():
    content = stripes(RED, BLUE, GREEN)
    style = stripes((2, 126, 3), (253, 4, 1), (0, 2, 250), name="style")
    (pairs,) = pair_regions(content, [style])
    assert [style.names[place] for place in pairs] == list(content.names)


def test_numbers_pair_with_the_same_numbers():
    content = read_labels(np.array([[0, 4], [7, 7]]), "content")
    style = read_labels(np.array([[7, 7, 4, 0]]), "style")
    assert pair_regions(content, [style]) == [[0, 1, 2]]


@pytest.mark.parametrize("lacking", ["content", "style"])
def test_a_region_in_one_picture_only_is_refused_with_its_share(lacking):
    both, more = stripes(RED, BLUE), stripes(RED, BLUE, GREEN, name="more")
    message = r"^more has the region green \(33 %\), and labels has only .*50 %\); give both"
    with pytest.raises(UserError, match=message):
        pair_regions(both, [more]) if lacking == "content" else pair_regions(more, [both])


def test_one_style_region_is_not_given_to_two():
    content = stripes((100, 0, 0), (130, 0, 0))  # a clean picture: two colours, 30 levels apart
    with pytest.raises(UserError, match=r"has the region maroon .* only #640000 \(100 %\)"):
        pair_regions(content, [stripes((100, 0, 0), name="style")])


def test_colours_and_numbers_do_not_pair():
    with pytest.raises(UserError, match="give both the same regions"):
        pair_regions(stripes(RED, BLUE), [read_labels(np.array([[0, 1]]), "style")])


def test_of_several_styles_each_may_hold_some_of_the_regions():
    content = stripes(RED, BLUE, GREEN)
    styles = [stripes(RED, name="a"), stripes(GREEN, RED, name="b"), stripes(BLUE, name="c")]
    pairs = pair_regions(content, styles)
    found = [
        [None if place is None else style.names[place] for place in places]
        for style, places in zip(styles, pairs, strict=True)
    ]
    by_name = [dict(zip(content.names, names, strict=True)) for names in found]
    assert by_name == [
        {"red": "red", "blue": None, "green": None},
        {"red": "red", "blue": None, "green": "green"},
        {"red": None, "blue": "blue", "green": None},
    ]
    with pytest.raises(UserError, match=r"region blue .* a has only red .* b has only .*green"):
        pair_regions(content, styles[:2])


def test_masks_pair_by_their_order():
    masks = read_masks([halves(), 1 - halves()], "masks")
    assert pair_regions(masks, [masks]) == [[0, 1]]
    with pytest.raises(
        UserError, match=r"^masks has 2 masks and one has 1; they pair by their ord"
    ):
        pair_regions(masks, [read_masks([halves()], "one")])


def test_masks_do_not_pair_with_labels():
    masks = read_masks([halves(), 1 - halves()], "masks")
    with pytest.raises(UserError, match=r"^masks and labels are masks and labels; give both as"):
        pair_regions(masks, [stripes(RED, BLUE)])


# Styles of regions


def test_a_mapping_gives_each_region_its_style():
    regions = stripes(RED, BLUE, GREEN)
    chosen = assign(regions, {"#0000ff": 2, "red": 1, "green": 2}, 2)
    assert dict(zip(regions.names, chosen, strict=True)) == {
        "red": 0,
        "blue": 1,
        "green": 1,
    }


def test_masks_are_mapped_by_name():
    masks = read_masks([halves(), 1 - halves()], "masks")
    assert assign(masks, {"2": 1, "1": 3}, 3) == [2, 0]


def test_without_a_mapping_one_style_goes_everywhere_and_masks_take_theirs():
    masks = read_masks([halves(), 1 - halves()], "masks")
    assert assign(stripes(RED, BLUE), {}, 1) == [0, 0]
    assert assign(masks, {}, 2) == [0, 1]


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"red": 1, "yellow": 2}, "^labels has no region 'yellow'; it has"),
        ({"red": 1}, r"^region_styles leaves out blue \(50 %\) of labels; say all, such as"),
        ({"red": 1, "blue": 3}, "^region_styles gives blue the style 3; styles are .* 1 to 2"),
        ({"red": 0, "blue": 1}, "^region_styles gives red the style 0"),
        ({"red": 1, "ff0000": 2, "blue": 1}, "^region_styles names red twice"),
    ],
)
def test_a_mapping_that_does_not_fit_is_refused(mapping, message):
    with pytest.raises(UserError, match=message):
        assign(stripes(RED, BLUE), mapping, 2)


def test_a_missing_mapping_is_asked_for_with_the_very_argument():
    """What the message says can be typed, and does what it says."""
    regions = stripes(RED, BLUE, (0x1E, 0x10, 0xA0))
    with pytest.raises(UserError, match="there are 2 styles; say which takes which") as caught:
        assign(regions, {}, 2)
    assert regions.listed() in str(caught.value)
    argument = str(caught.value).split("'")[1]
    mapping = OverridesParser.create().parse_override(argument).value()
    assert sorted(assign(regions, mapping, 2)) == [0, 0, 1]


def test_masks_that_do_not_match_the_styles_need_a_mapping():
    masks = read_masks([halves(), 1 - halves()], "masks")
    with pytest.raises(UserError, match=r"the regions 1 \(50 %\) and 2 \(50 %\), and there are 3"):
        assign(masks, {}, 3)


# What a person gives


def test_a_picture_is_labels_and_a_list_or_a_folder_is_masks(tmp_path):
    red_and_blue = np.tile(np.repeat(np.array([RED, BLUE], np.uint8), 6, axis=0), (9, 1, 1))
    grey = Image.fromarray(np.uint8(255 * halves()))
    Image.fromarray(red_and_blue).save(tmp_path / "labels.png")
    (tmp_path / "masks").mkdir()
    grey.save(tmp_path / "masks" / "left.png")
    labels = read_regions(str(tmp_path / "labels.png"), "content_regions")
    assert (labels.soft, labels.source) == (False, str(tmp_path / "labels.png"))
    folder = read_regions(tmp_path / "masks", "content_regions")
    assert (folder.soft, folder.names) == (True, ("left",))
    assert folder.source == str(tmp_path / "masks")
    several = read_regions([tmp_path / "masks" / "left.png", grey], "content_regions")
    assert (several.soft, several.names) == (True, ("left", "2"))
    assert several.source == "content_regions"


def test_arrays_are_labels_if_they_count_and_a_mask_if_they_weigh():
    assert not read_regions(red := np.array([[0, 1]]), "regions").soft
    assert not read_regions(torch.from_numpy(red), "regions").soft
    assert read_regions(halves(), "regions").soft
    assert read_regions(torch.from_numpy(halves()), "regions").soft
    assert not read_regions(torch.ones(3, 9, 9), "regions").soft
