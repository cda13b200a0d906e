"""Tiles against the whole picture, in float64: the same losses, the same gradient."""

import math
from itertools import chain

import pytest
import torch
from helpers import gradient, picture, relative_error, tiny_network

from styletransfer.config import ObjectiveConfig
from styletransfer.errors import UserError
from styletransfer.features import FeatureExtractor
from styletransfer.losses import STYLE_LOSSES
from styletransfer.modes import get_loss_mode
from styletransfer.objective.inputs import pair
from styletransfer.objective.tiled import TiledObjective
from styletransfer.objective.tiles import grid
from styletransfer.objective.whole import Objective

# The layout of VGG-19 with few channels: stride 16 at relu5_1.
VGG19 = ((3, 4), (4, 5), (5, 5, 4, 5), (6, 5, 5, 5), (6,))
# Odd numbers of convolutions in a block, so that halos begin at odd positions: before a pool that
# another follows in the same stage, and before one that does not.
ODD = ((3, 4), (4, 5, 4), (5, 5, 4), (6, 5, 5))
MODE = get_loss_mode("autograd_function")
GATYS = ObjectiveConfig(tv_weight=0.1)
TOLERANCE = 1e-10


def both(
    network: FeatureExtractor,
    config: ObjectiveConfig,
    size: tuple[int, int],
    tile: int,
    style_size: tuple[int, int] = (50, 71),
) -> tuple[Objective, TiledObjective]:
    content, style = picture(1, *size), picture(2, *style_size)
    return (
        Objective(network, MODE, config, pair(content, style)),
        TiledObjective(network, MODE, config, pair(content, style), tile),
    )


def check(network, config, size, tile, **sizes):
    """The losses and the gradients agree, at a picture that is neither content nor style."""
    whole, tiled = both(network, config, size, tile, **sizes)
    image = picture(3, *size)
    expected, actual = (
        each.evaluate(image.clone().requires_grad_()).as_floats() for each in (whole, tiled)
    )
    assert list(actual) == list(expected)
    assert actual == pytest.approx(expected, rel=TOLERANCE, abs=0)
    assert relative_error(gradient(tiled, image), gradient(whole, image)) <= TOLERANCE


@pytest.mark.parametrize("pooling", ["max", "average"])
@pytest.mark.parametrize("padding", ["zeros", "replicate"])
@pytest.mark.parametrize("normalization", ["target", "none"])
@pytest.mark.parametrize("style_loss", STYLE_LOSSES)
def test_gatys_layers(pooling, padding, normalization, style_loss):
    network = tiny_network(VGG19, pooling=pooling, padding=padding)
    network.content_gains = {"relu4_2": 1.25}
    config = ObjectiveConfig(tv_weight=0.1, normalization=normalization, style_loss=style_loss)
    check(network, config, (67, 101), 32)


@pytest.mark.parametrize(
    ("size", "tile"),
    [
        ((64, 96), 16),  # nothing is left over
        ((65, 97), 32),  # one row and one column are left over
        ((31, 47), 16),  # fifteen are
        ((16, 111), 16),  # one tile high
        ((150, 16), 16),
        ((45, 51), 23),  # rounded down to 16
        ((45, 51), 45),
        ((45, 51), 4096),
        ((160, 151), 64),  # a tile in the middle touches no border
        ((96, 600), 128),  # its content loss is relative to it at 512 px
    ],
)
@pytest.mark.parametrize("widths", [VGG19, ODD])
def test_sizes(widths, size, tile):
    config = GATYS
    if widths is ODD:
        config = ObjectiveConfig(style_layers=["relu1_1", "relu2_2", "relu3_3", "relu4_3"])
    check(tiny_network(widths, padding="replicate"), config, size, tile)


def test_style_smaller_and_larger_than_a_tile():
    network = tiny_network(VGG19)
    for style_size in ((16, 17), (130, 49)):
        check(network, GATYS, (40, 40), 16, style_size=style_size)


@pytest.mark.parametrize("widths", [VGG19, ODD])
def test_losses_on_convolutions(widths):
    """Layers before the ReLU, and a layer in front of another."""
    config = ObjectiveConfig(
        content_layers=["conv2_2", "relu2_2", "conv4_2"],
        style_layers=["conv1_1", "conv1_2", "relu1_2", "conv3_1", "conv4_2"],
        content_layer_weights=[0.5, 1.0, 2.0],
    )
    check(tiny_network(widths, padding="replicate"), config, (77, 45), 16)


@pytest.mark.parametrize("deepest", ["pool1", "pool3", "relu4_3"])
def test_odd_blocks_and_losses_on_pools(deepest):
    config = ObjectiveConfig(content_layers=[deepest], style_layers=["relu1_1", deepest])
    check(tiny_network(ODD), config, (83, 58), 24)


def test_targets_hold_no_graph():
    content, style = (picture(seed, 40, 40).requires_grad_() for seed in (1, 2))
    targets = TiledObjective(tiny_network(VGG19), MODE, GATYS, pair(content, style), 16).targets
    for target in (*targets.contents.values(), *chain(*targets.styles.values())):
        assert not target.value.requires_grad


def test_no_pool_at_all():
    config = ObjectiveConfig(content_layers=["conv1_2"], style_layers=["relu1_1"])
    check(tiny_network(VGG19, padding="replicate"), config, (13, 9), 3)
    check(tiny_network(VGG19), config, (5, 4), 1)


@pytest.mark.parametrize("settings", [{"content_weight": 0.0}, {"style_weight": 0.0}])
def test_one_kind_of_loss(settings):
    check(tiny_network(VGG19), ObjectiveConfig(**settings), (49, 66), 32)


def test_style_ends_above_content():
    """Pass one then walks less of the network, with a smaller stride."""
    config = ObjectiveConfig(content_layers=["relu4_2"], style_layers=["relu2_1"])
    check(tiny_network(VGG19), config, (59, 61), 8)


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("tile", [16, 64])
def test_gradients_add_up(tile, order):
    network = tiny_network(VGG19).to(memory_format=torch.channels_last)
    whole, tiled = both(network, GATYS, (40, 35), tile)
    leaf = picture(3, 40, 35).requires_grad_()
    for objective in (tiled, whole)[::order]:
        objective.evaluate(leaf)
    once = gradient(whole, leaf.detach())
    assert leaf.grad is not None
    assert relative_error(leaf.grad, 2 * once) <= TOLERANCE
    assert leaf.grad.is_contiguous()


@pytest.mark.parametrize("style_loss", STYLE_LOSSES)
def test_a_target_of_zeros_is_not_divided_by(style_loss):
    network = tiny_network(VGG19)
    for parameter in network.layers["conv4_1"].parameters():
        parameter.zero_()
    config = ObjectiveConfig(
        content_layers=["relu4_1"], style_layers=["relu1_1", "relu4_1"], style_loss=style_loss
    )
    check(network, config, (40, 35), 16)


def test_bfloat16_points_the_same_way():
    network = tiny_network(VGG19).bfloat16().to(memory_format=torch.channels_last)
    whole, tiled = both(network, GATYS, (64, 64), 32)
    image = picture(3, 64, 64).float()
    gradients = [gradient(each, image).flatten() for each in (whole, tiled)]
    assert torch.cosine_similarity(*gradients, dim=0) > 0.99


def test_nothing_is_read_twice_or_left_out():
    """Every position of every layer is owned by one tile; the halo is what relu5_1 needs."""
    network = tiny_network(VGG19)
    layers = network.layers
    for size in ((255, 400), (272, 256)):
        tiles = grid(layers, size, 64)
        for name in layers:
            stride = network.stride(name)
            owners = torch.zeros(1, size[0] // stride, size[1] // stride)
            for tile in tiles:
                owners[tile.place[name]] += 1
            assert (owners == 1).all(), name
    inner = next(tile for tile in grid(layers, (256, 256), 16) if tile.window[1].start == 112 - 70)
    # 156 pixels across for one position of relu5_1.
    assert inner.window[1] == slice(112 - 70, 112 + 16 + 70)


def test_bad_input():
    network, image = tiny_network(VGG19), picture(1, 40, 40)
    with pytest.raises(UserError, match="tile=15 must be at least 16"):
        TiledObjective(network, MODE, GATYS, pair(image, image), 15)
    for mode in ("fake_backward", "loss_attribute"):
        with pytest.raises(UserError, match="loss_mode=autograd_function"):
            TiledObjective(network, get_loss_mode(mode), GATYS, pair(image, image), 16)
    with pytest.raises(UserError, match="too small for relu5_1"):
        TiledObjective(network, MODE, GATYS, pair(image, picture(2, 15, 40)), 16)
    with pytest.raises(UserError, match="unknown layer relu9_1"):
        TiledObjective(
            network,
            MODE,
            ObjectiveConfig(content_layers=["relu9_1"]),
            pair(image, image),
            16,
        )


def test_a_weight_beyond_float32_gives_an_infinite_loss_as_the_whole_picture_does():
    image = picture(1, 40, 40).float()
    settings = ObjectiveConfig(content_weight=1e300)
    network = tiny_network(VGG19).float()
    tiled = TiledObjective(network, MODE, settings, pair(picture(2, 40, 40).float(), image), 16)
    assert math.isinf(tiled.evaluate(image.requires_grad_()).as_floats()["total"])
