"""Several styles and regions: the losses in every mode, whole and in tiles."""

import pytest
import torch
from helpers import MODES, gradient, layers, picture, relative_error, tiny_network
from torch import nn

from styletransfer.features import FeatureExtractor
from styletransfer.losses import LOSS_MODES, STYLE_LOSSES
from styletransfer.objective import Criterion
from styletransfer.objective.inputs import Inputs, Region, StylePart, at_layers, pair
from styletransfer.objective.whole import Objective
from styletransfer.tiling.tiled import TiledObjective


def left(height=16, width=20, columns=8):
    """Return a hard mask (1, 1, height, width): 1 in the first columns."""
    mask = torch.zeros(1, 1, height, width, dtype=torch.float64)
    mask[..., :columns] = 1
    return mask


def soft(seed=9, height=16, width=20):
    return picture(seed, height, width)[:, :1]


def two_regions(mask=None):
    """Return inputs with a left and a right region, with two styles in different proportions."""
    mask = left() if mask is None else mask
    sky = Region("sky", mask, (StylePart(0), StylePart(1, share=0.5)))
    seen = StylePart(0, weights=soft(8, 18, 14))
    house = Region("house", 1 - mask, (seen, StylePart(1, 3.0)))
    return Inputs(picture(1), (picture(2, 18, 14), picture(3, 15, 21)), (sky, house))


def objective(pictures, mode="autograd_function", tile=None, **settings):
    given = (tiny_network(), LOSS_MODES[mode], Criterion.of(layers(**settings)), pictures)
    return Objective(*given) if tile is None else TiledObjective(*given, tile)


def losses(made, image):
    return made.evaluate(image.clone().requires_grad_()).as_floats()


def of_pixels(pictures, **settings):
    """Return an objective with style losses only and a 1 x 1 convolution as feature extractor."""
    conv = nn.Conv2d(3, 6, 1).double()
    for seed, parameter in enumerate(conv.parameters()):
        parameter.data = picture(seed, 6, 1)[0].reshape(-1)[: parameter.numel()].view_as(parameter)
    network = FeatureExtractor(nn.Identity(), {"conv1_1": conv, "relu1_1": nn.ReLU()})
    criterion = Criterion.of(layers(style_layers=["relu1_1"], content_weight=0.0, **settings))
    given = (network.requires_grad_(False), LOSS_MODES["autograd_function"], criterion)
    return Objective(*given, pictures)


def test_a_region_is_compared_as_its_cropped_pixels_are():
    content, style, image = picture(1), picture(2, 18, 14), picture(4)
    regions = (Region("a", left(), (StylePart(0, weights=left(18, 14, 5)),)),)
    cropped = pair(content[..., :8], style[..., :5])
    for name in STYLE_LOSSES:
        settings = {"style_loss": name, "normalization": "none"}
        found = losses(of_pixels(Inputs(content, (style,), regions), **settings), image)
        expected = losses(of_pixels(cropped, **settings), image[..., :8])["style/relu1_1"]
        assert found["style/a/relu1_1"] == pytest.approx(8 / 20 * expected, rel=1e-10)


def test_styles_are_averaged_in_their_moments():
    """With shares by area, two parts of a style image give the same style as the whole."""
    content, style = picture(1), picture(2, 18, 14)
    sources = (StylePart(0, share=4.0), StylePart(1, share=10.0))
    parts = Inputs(content, (style[..., :4], style[..., 4:]), (Region(sources=sources),))
    for name in STYLE_LOSSES:
        whole = of_pixels(pair(content, style), style_loss=name)
        both = of_pixels(parts, style_loss=name)
        assert relative_error(gradient(both, picture(5)), gradient(whole, picture(5))) < 1e-10


@pytest.mark.parametrize("style_loss", STYLE_LOSSES)
@pytest.mark.parametrize(("mask", "tile"), [(left(), 4), (soft(), 6)], ids=["hard", "soft"])
def test_all_modes_and_tiles_agree(style_loss, mask, tile):
    pictures, image = two_regions(mask), picture(5)
    settings = {"style_loss": style_loss, "tv_weight": 0.1}
    reference = objective(pictures, "loss_attribute", **settings)
    expected, values = gradient(reference, image), losses(reference, image)
    others = [objective(pictures, mode, **settings) for mode in MODES if mode != "loss_attribute"]
    for other in (*others, objective(pictures, tile=tile, **settings)):
        assert relative_error(gradient(other, image), expected) < 1e-10
        assert losses(other, image) == pytest.approx(values, rel=1e-10)


def test_detail_speaks_at_its_own_layers_only():
    content, style, fine = picture(1), picture(2, 18, 14), picture(3, 15, 21)
    sources = (StylePart(0, layers=["relu2_1"]), StylePart(1, layers=["relu1_1"]))
    found = losses(objective(Inputs(content, (style, fine), (Region(sources=sources),))), content)
    coarse = losses(objective(pair(content, style)), content)
    detail = losses(objective(pair(content, fine)), content)
    assert found["style/relu2_1"] == coarse["style/relu2_1"] != detail["style/relu2_1"]
    assert found["style/relu1_1"] == detail["style/relu1_1"] != coarse["style/relu1_1"]


def test_positions_weigh_by_the_regions_share_of_their_pixels():
    found = at_layers(tiny_network(), left(8, 9, 3), ["relu1_1", "relu2_1"])
    assert torch.equal(found["relu1_1"], left(8, 9, 3)[0, 0])
    row = torch.tensor([1.0, 0.5, 0.0, 0.0], dtype=torch.float64)  # the ninth column is left out
    assert torch.equal(found["relu2_1"], row.expand(4, 4))


def test_a_region_is_left_out_at_layers_where_it_vanishes():
    dot = torch.zeros(1, 1, 16, 20, dtype=torch.float64)
    dot[..., 3, 3] = 1
    assert at_layers(tiny_network(), dot, ["relu2_1"]) == {}
    regions = (Region("dot", dot), Region("rest", 1 - dot))
    names = losses(objective(Inputs(picture(1), (picture(2),), regions)), picture(3))
    assert "style/dot/relu1_1" in names
    assert "style/dot/relu2_1" not in names


def test_a_resized_region_is_averaged_over_areas():
    """Regions that add up to 1 still do: stripes one pixel wide become a share of each pixel."""
    mask = torch.zeros(1, 1, 64, 80, dtype=torch.float64)
    mask[..., ::4] = 1
    regions = (Region("a", mask), Region("b", 1 - mask, (StylePart(weights=mask),)))
    pictures = Inputs(picture(1, 64, 80), (picture(2, 64, 80),), regions, protected=mask)
    small = pictures.resized((16, 20), [(8, 10)])
    a, b = (region.weights for region in small.regions)
    torch.testing.assert_close(a + b, torch.ones(1, 1, 16, 20, dtype=torch.float64))
    for weights in (a, small.protected, small.regions[1].sources[0].weights):
        inner = weights[..., 1:-1]  # border pixels average fewer values
        torch.testing.assert_close(inner, torch.full_like(inner, 0.25), rtol=0, atol=0.03)
