"""`apply` with regions, protected pixels, and colours: what each part of a pastiche is made of."""

from functools import partial
from pathlib import Path

import pytest
import torch
from helpers import check_refused, picture, write_pictures
from networks.nets import applying, close, write_network
from PIL import Image

from styletransfer.pictures import images
from styletransfer.pictures.color import palette

apply = applying("photo.png", "out.png")
HALVES = {"content_regions": "halves.png", "region_styles": {"red": 1, "blue": 2}}


@pytest.fixture(autouse=True)
def desk(desk):
    """Write two networks, a picture of 22 x 13 pixels, its two halves, and a mask of its top."""
    write_network("oil", "wash")
    write_network()
    images.write("photo.png", picture(0, 13, 22))
    drawn("halves.png", (22, 13), "red", "blue", (11, 0, 22, 13))
    drawn("top.png", (22, 13), "black", "white", (0, 0, 22, 5))
    return desk


def drawn(name, size, ground, color, box):
    made = Image.new("RGB", size, ground)
    made.paste(color, box)
    made.save(name)


def painted(**changed):
    """Return what `apply` paints of the picture."""
    apply(**changed)
    return images.read("out.png").rgb


@pytest.mark.slow
def test_each_region_has_its_style_and_protection_its_input():
    photo, oil, wash = images.read("photo.png").rgb, *(painted(style=s) for s in ("oil", "wash"))
    made = painted(**HALVES)
    assert close(made[..., :11], oil[..., :11])
    assert close(made[..., 11:], wash[..., 11:])
    assert not close(oil, wash)
    kept = painted(**HALVES, protect="top.png")
    assert close(kept[..., :5, :], photo[..., :5, :])
    assert close(kept[..., 5:, :], made[..., 5:, :])
    assert not close(made[..., :5, :], photo[..., :5, :])


@pytest.mark.parametrize("drawing", ["regions", "protection"])
def test_edges_of_what_is_drawn_are_soft(drawing):
    """In a picture of 1024 pixels, an edge is 4 pixels wide."""
    images.write("photo.png", picture(1, 16, 1024))
    drawn("halves.png", (1024, 16), "red", "blue", (512, 0, 1024, 16))
    drawn("half.png", (1024, 16), "black", "white", (512, 0, 1024, 16))
    if drawing == "regions":
        made, ends = painted(**HALVES), [painted(style=style) for style in ("oil", "wash")]
    else:
        made = painted(style="oil", protect="half.png")
        ends = [painted(style="oil"), images.read("photo.png").rgb]
    for columns, end in ((slice(505), ends[0]), (slice(520, 1024), ends[1])):
        assert close(made[..., columns], end[..., columns])
    edge = slice(510, 514)
    assert not any(close(made[..., edge], end[..., edge]) for end in ends)


@pytest.mark.slow
def test_colors_come_from_where_color_says():
    """Compare means in OKLab: L, a and b."""
    write_pictures("style.png", height=24, width=40)
    photo, style = (images.read(name).rgb * 0.5 + 0.2 for name in ("photo.png", "style.png"))
    images.write("photo.png", photo)
    images.write("style.png", style * torch.tensor([1.0, 0.6, 0.3]).view(1, 3, 1, 1))
    work = partial(painted, network="any.safetensors", style="style.png", style_size=48)

    def mean(image):
        return palette([(1.0, image, None)])[0].flatten()

    ends = [mean(images.read(name).rgb) for name in ("photo.png", "style.png")]
    near = partial(torch.testing.assert_close, rtol=0, atol=0.02)
    near(mean(work(color="content_palette")), ends[0])
    near(mean(work(color="style_palette")), torch.stack([ends[0][0], *ends[1][1:]]))
    plain = work(color="style")
    assert close(work(color="style_palette", color_strength=0.0), plain)
    half = work(color="style_palette", color_strength=0.5)
    assert not close(half, plain)


def test_regions_that_cannot_be_are_told_in_one_line():
    drawn("square.png", (13, 13), "black", "white", (0, 0, 5, 13))
    bad = [
        ({"region_styles": {"red": 1}}, "region_styles needs content_regions"),
        ({"content_regions": "halves.png"}, "say which takes which"),
        (HALVES | {"style_weights": [1.0, 2.0]}, "here each region has one"),
        ({"protect": "photo.png"}, "a mask is grey"),
        ({"protect": "square.png"}, "another aspect ratio"),
        ({"color": "style_palette"}, "needs a network that knows any style"),
    ]
    check_refused(painted, bad)
    assert not Path("out.png").exists()
