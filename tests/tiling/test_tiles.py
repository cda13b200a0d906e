"""In float64, tiles give the same losses and gradient as the whole image."""

from dataclasses import replace

import pytest
import torch
from helpers import VGG19, check_error, gradient, picture, relative_error, tiny_network

from styletransfer.losses import LOSS_MODES
from styletransfer.objective import Criterion, gradient_at
from styletransfer.objective.inputs import Anchor, Inputs, Region, StylePart, pair
from styletransfer.objective.whole import Objective
from styletransfer.settings import ObjectiveConfig
from styletransfer.tiling.tiled import TiledObjective
from styletransfer.tiling.tiles import grid

# Convolutions per block. The odd numbers make halos begin at odd positions before pools, both
# before a pool followed by another pool in the same stage and before any other pool.
ODD = ((3, 4), (4, 5, 4), (5, 5, 4), (6, 5, 5))
MODE = LOSS_MODES["autograd_function"]
GATYS = ObjectiveConfig(tv_weight=0.1)


def check(network, config, pictures, tile):
    """Check that losses and gradients in tiles equal those of the whole, at a third image."""
    image = picture(3, *pictures.content.shape[2:])
    criterion = Criterion.of(config)

    def evaluated(objective):
        leaf = image.clone().requires_grad_()
        return objective.evaluate(leaf).as_floats(), leaf.grad

    losses, slope = evaluated(Objective(network, MODE, criterion, pictures))
    ours, tiled = evaluated(TiledObjective(network, MODE, criterion, pictures, tile))
    assert list(ours) == list(losses)
    assert ours == pytest.approx(losses, rel=1e-10, abs=0)
    assert relative_error(tiled, slope) < 1e-10


def noise(*size, style=(50, 71)):
    return pair(picture(1, *size), picture(2, *style))


@pytest.mark.parametrize(
    ("size", "tile"),
    [
        ((64, 96), 16),  # whole tiles
        ((65, 97), 32),  # one row and one column are left over
        ((16, 111), 16),  # fifteen columns are left over; one tile high
        ((45, 51), 23),  # the tile is rounded down to 16
        ((45, 51), 4096),
        ((130, 119), 48),  # a tile in the middle touches no border
    ],
)
def test_sizes(size, tile):
    odd = ObjectiveConfig(style_layers=["relu1_1", "relu2_2", "relu3_3", "relu4_3"])
    for widths, config in ((VGG19, GATYS), (ODD, odd)):
        check(tiny_network(widths, padding="replicate"), config, noise(*size), tile)
    anchor = Anchor(picture(5, *size), weights=picture(6, *size)[:, :1], weight=30.0)
    larger = replace(noise(*size, style=(16 + size[0], 17)), anchor=anchor)
    check(tiny_network(VGG19, pooling="average"), GATYS, larger, tile)


@pytest.mark.parametrize(
    ("widths", "contents", "styles"),
    [
        # Layers before a ReLU, and losses at neighbouring layers.
        (VGG19, ["conv2_2", "relu2_2", "conv4_2"], ["conv1_1", "conv1_2", "relu1_2", "conv4_2"]),
        (ODD, ["conv2_2", "relu2_2", "conv4_2"], ["conv1_1", "conv1_2", "relu1_2", "conv3_1"]),
        (ODD, ["pool3"], ["relu1_1", "pool3"]),
        (VGG19, ["relu4_2"], ["relu2_1"]),  # the first pass ends at relu2_1
        (VGG19, ["relu4_2"], []),
        (VGG19, ["conv1_2"], ["relu1_1"]),  # no pool
    ],
)
def test_layers(widths, contents, styles):
    config = ObjectiveConfig(content_layers=contents, style_layers=styles)
    check(tiny_network(widths, padding="replicate"), config, noise(61, 45), 16)


def test_gradients_add_up_and_bfloat16_points_the_same_way():
    network = tiny_network(VGG19).to(memory_format=torch.channels_last)
    given = (network, MODE, Criterion.of(GATYS), noise(40, 35))
    whole, tiled = Objective(*given), TiledObjective(*given, 16)
    for order in ((whole, tiled), (tiled, whole)):
        leaf = picture(3, 40, 35).requires_grad_()
        found = gradient_at(order[0], leaf)
        assert leaf.grad is None
        assert torch.equal(leaf, picture(3, 40, 35))
        for objective in order:
            objective.evaluate(leaf)
        assert relative_error(leaf.grad, 2 * found) < 1e-10
        assert leaf.grad.is_contiguous()
    given, image = (network.bfloat16(), *given[1:3], noise(64, 64)), picture(3, 64, 64).float()
    found = [gradient(made, image) for made in (Objective(*given), TiledObjective(*given, 32))]
    assert torch.cosine_similarity(*(each.flatten() for each in found), dim=0) > 0.98


def test_tiles_read_little_more_than_the_deepest_layer_sees():
    # One position of relu5_1 sees 156 x 156 pixels.
    network = tiny_network(VGG19)
    windows = [tile.window[1] for tile in grid(network.layers, (256, 32), 16)]
    assert slice(112 - 70, 112 + 16 + 70) in windows


def test_what_cannot_be_in_tiles_is_refused():
    network, image = tiny_network(VGG19), picture(1, 40, 40)

    def made(mode=MODE, style=image, tile=16):
        TiledObjective(network, mode, Criterion.of(GATYS), pair(image, style), tile)

    check_error("tile=15 must be at least 16", made, tile=15)
    for mode in ("fake_backward", "loss_attribute"):
        check_error("loss_mode=autograd_function", made, LOSS_MODES[mode])
    made(LOSS_MODES["tensor_hook"])  # tensor_hook has a closed-form gradient, too


@pytest.mark.parametrize(
    ("settings", "height", "tile"),
    [
        # 117 rows are 7 positions of the deepest layer and a rest; the style has 3 and a rest.
        ({"style_loss": "moments"}, 117, 400),
        ({"style_loss": "wasserstein"}, 117, 32),
        # Tiles begin at multiples of the deepest layer's stride, also for shallower ones.
        ({"content_layers": ["relu2_1"], "normalization": "none"}, 83, 16),
    ],
)
def test_other_losses(settings, height, tile):
    network = tiny_network(VGG19)
    network.content_gains = {"relu4_2": 1.25}
    check(network, replace(GATYS, **settings), noise(height, 35), tile)


def test_matched_targets_are_cut_as_the_content_is():
    sky = (torch.arange(52)[None, None, None] < 30).expand(1, 1, 37, 52).double()
    regions = (Region("sky", sky), Region("house", 1 - sky, (StylePart(0), StylePart(1))))
    styles = (picture(2, 40, 33), picture(3, 35, 48))  # both are busy, one less
    content = picture(1, 37, 52)
    content[..., :26] = 0.5  # calm
    pictures = Inputs(content, styles, regions, start=picture(4, 37, 52))
    check(tiny_network(VGG19), replace(GATYS, match_weight=0.5), pictures, 16)
