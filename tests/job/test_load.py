"""Loading a job from its keys: pictures, styles, regions and protection; the plan of its run."""

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import (
    check_error,
    composed,
    layers,
    loaded,
    pair,
    picture,
    run_settings,
    write_pictures,
)
from PIL import Image, ImageOps

from styletransfer.errors import UserError
from styletransfer.job import memory
from styletransfer.job.choices import Choices, parse_tile
from styletransfer.job.job import Start
from styletransfer.job.memory import plan
from styletransfer.job.prepare import prepare
from styletransfer.job.scales import Pyramid, longer_sides, steps_at_scale
from styletransfer.pictures import images
from styletransfer.pictures.images import resize
from styletransfer.pictures.rotate import inner_size
from styletransfer.settings import FeaturesConfig

RED, BLUE = (255, 0, 0), (0, 0, 255)
TWO = {"content_regions": "labels.png", "style": ["a.png", "b.png"]}


def paint(path, *colors, height=24, width=32):
    """Write a label picture with one vertical stripe per colour."""
    stripes = np.arange(width) * len(colors) // width
    pixels = np.array(colors, np.uint8)[stripes]
    Image.fromarray(np.tile(pixels, (height, 1, 1))).save(path)


def shade(path, columns, height=24, width=32):
    """Write a mask that is white in its first `columns` columns."""
    mask = np.zeros((height, width), np.uint8)
    mask[:, :columns] = 255
    Image.fromarray(mask).save(path)


@pytest.fixture(autouse=True)
def desk(here):
    """Return a folder with a content image, three style images, label pictures and masks."""
    write_pictures("content.png", "a.png", "b.png", "c.png")
    paint("labels.png", RED, BLUE)
    paint("swapped.png", BLUE, RED)
    for name, columns in (("left", 16), ("all", 32), ("few", 4)):
        shade(f"{name}.png", columns)
    ImageOps.invert(Image.open("left.png")).save("right.png")


def pictures(**settings):
    defaults = {"content": "content.png", "style": "a.png", "size": 32}
    return loaded(run_settings(**defaults | settings))


def refused(message, **settings):
    check_error(message, pictures, **settings)


def columns(weights):
    """Return the first row of weights as a string of digits, with 9 for a weight of 1."""
    return "".join(str(round(9 * value)) for value in weights[0, 0, 0].tolist())


def sources(region):
    return [(source.style, round(source.share, 3)) for source in region.sources]


def test_styles_are_blended_by_weight_at_their_own_scales():
    styles = {"style": ["a.png", "b.png", "c.png"], "style_weights": [1.0, 0.0, 3.0]}
    made = pictures(**styles, style_scale=[1.0, 0.5, 0.75])
    assert [tuple(style.shape[2:]) for style in made.styles] == [(24, 32), (12, 16), (18, 24)]
    assert sources(made.regions[0]) == [(0, 0.25), (2, 0.75)]


def test_a_folder_of_styles_is_read_in_the_order_of_names():
    Path("folder").mkdir()
    for name in ("b", "a"):
        Path(f"{name}.png").rename(f"folder/{name}.png")
    Path("folder/notes.txt").write_text("no picture")
    made = pictures(style="folder")
    assert [Path(name).name for name in made.names] == ["content.png", "a.png", "b.png"]


def test_numbers_that_do_not_fit_are_refused():
    two = {"style": ["a.png", "b.png"]}
    refused("unknown init 'mirror'; choose content, style, noise or a picture file", init="mirror")
    refused("style_weights holds 1 numbers but style names 2", **two, style_weights=[1.0])
    refused("style_weights are all 0", **two, style_weights=[0.0, 0.0])
    refused("style_rotation holds 2 numbers", style_rotation=[1.0, 2.0])
    deep = layers(style_layers=["relu2_2"])
    refused("style_detail has no effect: objective.detail_la", style_detail="b.png", objective=deep)
    refused("style has no effect: objective.detail_layers names all", style_detail="b.png")


def test_each_style_is_rotated_by_its_own_angle():
    styles = {"style": ["a.png", "b.png"], "style_detail": "c.png"}
    styles["objective"] = layers(detail_layers=["relu1_1"])
    made, still = pictures(**styles, style_rotation=[90.0, 30.0]), pictures(**styles)
    assert torch.equal(made.styles[0], torch.rot90(still.styles[0], 1, (2, 3)))
    high, wide = inner_size((24, 32), 30.0)
    assert made.styles[1].shape[2] / made.styles[1].shape[3] == pytest.approx(high / wide, abs=0.05)
    assert torch.equal(made.styles[2], still.styles[2])


def test_a_style_of_which_a_turn_leaves_too_little_is_refused():
    for height, left in ((10, "7 x 7"), (1, "0 x 0")):
        write_pictures("narrow.png", height=height, width=200)
        message = rf"^narrow\.png shows {left} pixels; each side needs at least 8"
        refused(message, style="narrow.png", style_rotation=45.0)


def test_a_content_that_is_invisible_is_refused():
    Image.new("RGBA", (32, 24), (0, 0, 0, 0)).save("ghost.png")
    for color in ("style", "content_palette"):
        refused(r"^ghost\.png is fully transparent", content="ghost.png", color=color)


def test_style_regions_belong_to_the_style_as_its_file_is():
    regions = {"content_regions": "labels.png", "style_regions": "swapped.png"}
    (red,) = (region for region in pictures(**regions).regions if region.name == "red")
    assert columns(red.weights) == "9" * 16 + "0" * 16
    assert columns(red.sources[0].weights) == "0" * 16 + "9" * 16
    message = r"^style_regions need a\.png without style_rotation and without transparent margins"
    refused(message, **regions, style_rotation=180.0)
    pixels = np.asarray(Image.open("a.png").convert("RGBA")).copy()
    pixels[:, :8, 3] = 0
    Image.fromarray(pixels).save("a.png")
    refused(message, **regions)


def test_uniform_margins_of_a_style_go_unless_labels_fit_it():
    for name in ("a", "b"):
        ImageOps.expand(Image.open(f"{name}.png"), 4, (255, 255, 255)).save(f"{name}_mat.png")
    whole, mat = (pictures(style=name) for name in ("a.png", "a_mat.png"))
    assert torch.equal(whole.styles[0], mat.styles[0])
    whole, mat = (
        pictures(style_detail=name, objective=layers(detail_layers=["relu1_1"]))
        for name in ("b.png", "b_mat.png")
    )
    assert torch.equal(whole.styles[1], mat.styles[1])
    paint("fits.png", RED, BLUE, height=32, width=40)
    regions = {"content_regions": "labels.png", "style_regions": "fits.png"}
    assert (pictures(style="a_mat.png", **regions).styles[0][..., :3] > 0.99).all()


def test_a_region_takes_the_styles_that_hold_it():
    made = pictures(content_regions="labels.png")
    assert [sources(region) for region in made.regions] == [[(0, 1.0)]] * 2
    paint("only_red.png", RED)
    regions = ["labels.png", "only_red.png"]
    made = pictures(**TWO, style_regions=regions, style_weights=[1.0, 3.0])
    found = {region.name: sources(region) for region in made.regions}
    assert found == {"red": [(0, 0.25), (1, 0.75)], "blue": [(0, 0.25)]}


def test_each_region_gets_the_style_that_is_named():
    detail = layers(detail_layers=["relu1_1"])
    made = pictures(
        **TWO, region_styles={"red": 2, "blue": 1}, style_detail="c.png", objective=detail
    )
    found = {region.name: [source.style for source in region.sources] for region in made.regions}
    assert found == {"red": [1, 2], "blue": [0, 2]}
    assert all(source.weights is None for region in made.regions for source in region.sources)
    config = composed("train", "++region_styles={1:2,red:1}")  # Hydra reads 1 and 2 as numbers
    assert config.region_styles == {"1": 2, "red": 1}


def test_regions_and_masks_that_do_not_fit_are_refused():
    """tests/pictures has the tests of label pictures and of pairs of regions."""
    paint("tall.png", RED, BLUE, height=32)
    paint("blue.png", BLUE)
    shade("high.png", 9, height=32)
    said, two = {"region_styles": {"red": 1, "blue": 2}}, {"style": ["a.png", "b.png"]}
    refused("^style_regions needs content_regions", style_regions="labels.png")
    refused("^region_styles needs content_regions", **said)
    labels, labelled = {"content_regions": "labels.png"}, {"style_regions": "labels.png"}
    refused("^style_regions and region_styles exclude each other", **labels, **labelled, **said)
    weighted = labels | two | {"style_weights": [0.0, 1.0]}
    refused("^style_weights blend styles, but here each region has one", **weighted, **said)
    message = "^style_regions names 1 label picture, and style 2 images"
    refused(message, **labels, **two, **labelled)
    message = r"^the region red \(50 %\) of labels.png is only in styles of weight 0"
    refused(message, **weighted, style_regions=["labels.png", "blue.png"])
    message = "tall.png has 32 x 32 pixels and its picture 32 x 24"
    refused(f"^{message}", content_regions="tall.png")
    refused(f"^{message}", **labels, style_regions="tall.png")
    refused("^protect=high.png has 32 x 32 pixels and its picture 32 x 24", protect="high.png")
    refused("^labels.png is a colour picture", protect="labels.png")


def test_regions_give_way_to_what_is_protected(caplog):
    made = pictures(content_regions="labels.png", protect="few.png")
    found = {region.name: columns(region.weights) for region in made.regions}
    assert found["red"] == "0" * 4 + "9" * 12 + "0" * 16
    assert columns(made.protected) == "9" * 4 + "0" * 28
    config = run_settings(content="content.png", style="a.png", size=32)
    config.content_regions = "labels.png"
    for level, painted in ((0.6, ["red", "blue"]), (0.4, ["blue"])):  # 0.6 rounds to 1
        protected = torch.zeros(24, 32)
        protected[:, :16] = 1 - level / 255
        regions = loaded(config, protect=protected).regions
        assert [region.name for region in regions] == painted
        told = "protect covers the region red: no style paints there" in caplog.text
        assert told is (painted == ["blue"])


def test_to_protect_everything_is_refused(tiny_vgg):
    """An image is all protected if no pixel is free by half an 8-bit level or more."""
    refused("^protect covers all there is to paint", protect="all.png")
    config = run_settings(content="content.png", style="a.png", size=32, device="cpu")
    loaded(config, protect=torch.full((24, 32), 1 - 0.6 / 255))
    with pytest.raises(UserError, match=r"^protect covers all there is to paint"):
        loaded(config, protect=torch.full((24, 32), 1 - 0.4 / 255))
    mask = torch.ones(240, 320)
    mask[:3, :3] = 0
    config.features = FeaturesConfig(name="vgg19", weights="random")
    config.objective = layers(content_weight=0.0)
    with pytest.raises(UserError, match="what is left to paint is too small for every style layer"):
        prepare(config, {"protect": mask})


def test_a_style_region_that_vanishes_at_all_layers_is_refused(tiny_vgg):
    """With no content loss and no match loss, nothing would be left to optimise."""
    labels = np.zeros((24, 32, 3), np.uint8)
    labels[8:11, 8:11] = RED
    config = run_settings(content="content.png", style="a.png", size=32, device="cpu")
    config.features = FeaturesConfig(name="vgg19", weights="random")
    config.objective = layers(content_weight=0.0, style_layers=["relu4_1"])
    regions = np.full((24, 32, 3), RED, np.uint8)
    with pytest.raises(UserError, match="or its region of the style is; raise size"):
        prepare(config, {"content_regions": regions, "style_regions": labels})


def test_a_photograph_that_is_enlarged_is_mentioned(caplog):
    with caplog.at_level(logging.INFO):
        pictures(size=32)
        assert caplog.text == ""
        pictures(size=33)
    assert caplog.messages == ["content.png: enlarged from 32 x 24 pixels"]


def test_a_pyramid_doubles_and_its_scales_share_the_steps():
    """With scales=0 only a single scale is below 128; of many scales the finest has most steps."""
    for given, sides in (
        ((512, 1, 100), [512]),
        ((17, 5, 500), [1, 2, 4, 8, 17]),
        ((180, 0, 500), [180]),
        ((255, 0, 9), [128, 255]),
        ((4096, 0, 3), [1024, 2048, 4096]),
    ):
        assert longer_sides(*given) == sides
    for shares in ([1, 2], [2, 2, 3], [19, 19, 20, 42], [1, 1, 1, 1, 1], [2, 3, 3, 3, 3, 3, 12]):
        count, steps = len(shares), sum(shares)
        assert [steps_at_scale(steps, count, index) for index in range(count)] == shares
    for shares in ([60], [45, 15], [22, 23, 15], [15, 15, 15, 15], [1, 1], [1, 1, 1, 1]):
        count, steps = len(shares), sum(shares)
        assert [steps_at_scale(steps, count, index, 0.25) for index in range(count)] == shares


def test_no_scale_makes_a_style_narrower_than_32_pixels():
    inputs = pair(picture(0, 24, 32), picture(1, 24, 32))
    for factor, sides in ((1.0, [128, 256, 512]), (0.25, [256, 512])):
        config = run_settings(size=512, scales=0, style_scale=factor)
        assert [max(scale.size) for scale in Pyramid.of(config).scales(inputs)] == sides


def test_a_finer_scale_brings_back_half_the_detail_of_the_start():
    start = picture(32, 24) * 0.5 + 0.25
    height, width = size = (start.shape[2], start.shape[3])
    coarse = resize(start, (height // 2, width // 2))
    blur = resize(coarse, size)
    half = (blur + start) / 2
    content, style, noise = (Start(name, 0) for name in ("content", "style", "noise"))
    assert torch.equal(content.enlarged(start, start, size), start)
    assert torch.equal(content.enlarged(coarse, start, size), start)  # nothing was changed
    # Changes of the coarse image are kept.
    torch.testing.assert_close(style.enlarged(coarse + 0.1, start, size), half + 0.1)
    assert torch.equal(noise.enlarged(coarse, start, size), blur)
    assert content.enlarged(torch.ones_like(coarse), start, size).max() == 1


def texture(*words):
    words = ("experiment=texture", "style=a.png", "device=cpu", "precision=float64", *words)
    config = composed("train", *words)
    config.features = FeaturesConfig(name="vgg19", weights="random")
    return config


def test_a_texture_has_a_shape_for_a_content(tiny_vgg):
    job = prepare(texture("content=3:2", "size=320"))
    assert [scale.size for scale in job.scales] == [(96, 160), (208, 320)]  # multiples of 16
    config = texture("content=3:2", "size=72")
    with pytest.raises(UserError, match="must be multiples of 16 pixels, not 72 x 54; choose"):
        prepare(config, enlarge=False)
    config = replace(config, size=64)
    with pytest.raises(UserError, match=r"tiles need objective\.seamless=false; choose that, or"):
        prepare(replace(config, tile="64"))


def test_a_size_that_cannot_fit_is_refused(tiny_vgg, monkeypatch):
    """A dry run plans it. No picture of 750 000 million pixels is made for that."""
    for content in ("content.png", "4:3"):
        config = texture(f"content='{content}'", "size=1000000")
        assert "\n1000000 x 750000: " in plan(prepare(config, enlarge=False))
        check_error("size=1000000 makes a picture of 1000000 x 750000 pixels", prepare, config)
    monkeypatch.setattr(memory, "free_bytes", lambda device: 0)
    config = composed("train", "size=3200", "device=cpu", "optimizer.history=20")
    # The sum is 55 tensors of the image's size and two of each style's.
    for styles, gibibytes in ((1, "4.9"), (40, "11.6")):
        message = f"3200 x 2400 pixels, which takes at least {gibibytes} GiB, and 0 MiB are free"
        check_error(message, memory.check_room, Choices.of(config), (24, 32), styles)


def test_settings_are_checked_before_a_picture_is_read():
    nothing = layers(content_weight=0.0, style_weight=0.0)
    for message, settings in (
        ("^tile=small must be", {"tile": "small"}),
        ("^unknown device 'abacus'", {"device": "abacus"}),
        ("^all content and style weights are 0", {"objective": nothing}),
    ):
        config = run_settings(content="missing.png", style="missing.png", **settings)
        check_error(message, prepare, config)


def test_each_file_is_read_once(tiny_vgg, monkeypatch):
    found, read = [], images.read
    monkeypatch.setattr(images, "read", lambda path: found.append(path) or read(path))
    names = ["content.png", "a.png", "b.png", "c.png", "start.png"]
    write_pictures(*names)
    config = run_settings(content=names[0], style=names[1:3], style_detail=names[3], init=names[4])
    config.objective = layers(detail_layers=["relu1_1"])
    config.features = FeaturesConfig(name="vgg19", weights="random")
    prepare(config)
    assert sorted(found) == sorted(names)


def test_a_job_takes_over_a_network_of_the_same_settings(tiny_vgg):
    config = run_settings(content="content.png", style="a.png", size=32, device="cpu")
    config.features = FeaturesConfig(name="vgg19", weights="random")
    job = prepare(config)
    assert prepare(replace(config, steps=9), like=job).extractor is job.extractor
    for changes in (
        {"seed": 1},
        {"precision": "float64"},
        {"features": replace(config.features, pooling="average")},
        {"objective": layers(style_layers=["relu1_1"])},
    ):
        assert prepare(replace(config, **changes), like=job).extractor is not job.extractor


def test_tiles_that_cannot_be_are_refused():
    for text in ("-5", "0", "small", "1.5", ""):
        check_error("must be auto, off or a number of pixels above 0", parse_tile, text)
