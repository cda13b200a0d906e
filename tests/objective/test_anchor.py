"""The temporal loss: one more term of the objective, in every loss mode and in tiles."""

from dataclasses import replace

import pytest
import torch
from helpers import MODES, gradient, layers, picture, relative_error

from styletransfer.losses import temporal_loss
from styletransfer.modes import get_loss_mode
from styletransfer.objective.inputs import Anchor, Inputs, pair
from styletransfer.objective.tiled import TiledObjective
from styletransfer.objective.whole import Objective, style_targets_of

WEIGHT = 30.0


@pytest.fixture
def pictures(content, style) -> Inputs:
    """A content image, and what the frame before leads to expect."""
    anchor = Anchor(target=picture(5), weights=picture(6)[:, :1], weight=WEIGHT)
    return replace(pair(content, style), anchor=anchor)


def of(mode, network, pictures, tile=None, **settings):
    arguments = network, get_loss_mode(mode), layers(**settings), pictures
    return TiledObjective(*arguments, tile) if tile else Objective(*arguments)


def test_it_is_the_weighted_mean_square():
    image, target, weights = picture(1), picture(2), picture(3)[:, :1]
    expected = sum(
        float(weights[0, 0, y, x] * (image[0, c, y, x] - target[0, c, y, x]) ** 2)
        for c in range(3)
        for y in range(16)
        for x in range(20)
    )
    assert temporal_loss(image, target, weights).item() == pytest.approx(expected / (3 * 16 * 20))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("tv_weight", [0.0, 2.0])
def test_it_adds_its_gradient_in_every_mode(mode, tv_weight, network, pictures):
    """2 w c (x - t) / D, beside whatever else there is."""
    image, anchor = picture(3), pictures.anchor
    plain = replace(pictures, anchor=None)
    before = gradient(of(mode, network, plain, tv_weight=tv_weight), image)
    after = gradient(of(mode, network, pictures, tv_weight=tv_weight), image)
    expected = 2 * WEIGHT * anchor.weights * (image - anchor.target) / image.numel()
    assert relative_error(after - before, expected) < 1e-10


@pytest.mark.parametrize("mode", MODES)
def test_it_is_reported_and_part_of_the_total(mode, network, pictures):
    image = picture(3)
    losses = of(mode, network, pictures).evaluate(image.clone().requires_grad_()).as_floats()
    anchor = pictures.anchor
    expected = WEIGHT * temporal_loss(image, anchor.target, anchor.weights).item()
    assert losses["temporal"] == pytest.approx(expected)
    total = losses.pop("total")
    assert total == pytest.approx(sum(losses.values()))
    assert list(losses)[-1] == "temporal"


@pytest.mark.parametrize("tv_weight", [0.0, 2.0])
def test_tiles_have_the_same_losses_and_gradient(tv_weight, network, pictures):
    whole = of("autograd_function", network, pictures, tv_weight=tv_weight)
    tiled = of("autograd_function", network, pictures, tile=8, tv_weight=tv_weight)
    image = picture(3)
    expected, found = (
        each.evaluate(image.clone().requires_grad_()).as_floats() for each in (whole, tiled)
    )
    assert list(found) == list(expected)
    assert found == pytest.approx(expected, rel=1e-10)
    assert relative_error(gradient(tiled, image), gradient(whole, image)) < 1e-10


def test_tiles_take_styles_that_were_made_before(network, pictures):
    made = style_targets_of(network, layers(), pictures)
    mode = get_loss_mode("autograd_function")
    known = TiledObjective(network, mode, layers(), pictures, 8, made)
    anew = TiledObjective(network, mode, layers(), pictures, 8)
    assert known.targets.styles is made
    assert relative_error(gradient(known, picture(3)), gradient(anew, picture(3))) < 1e-10


def test_no_weight_is_no_loss(network, pictures):
    free = replace(pictures, anchor=replace(pictures.anchor, weight=0.0))
    losses = of("autograd_function", network, free).evaluate(picture(3).requires_grad_())
    assert "temporal" not in losses.terms


def test_it_is_resized_and_moved_with_the_pictures(pictures):
    small = pictures.resized((8, 10), [(9, 7)])
    assert small.anchor.target.shape == (1, 3, 8, 10)
    assert small.anchor.weights.shape == (1, 1, 8, 10)
    assert small.anchor.weights.mean() == pytest.approx(float(pictures.anchor.weights.mean()), 0.05)
    single = pictures.to(torch.zeros(1))
    assert (single.anchor.target.dtype, single.anchor.weights.dtype) == (torch.float32,) * 2
