"""The gradient at a picture: right, whole and in tiles, and free of what made it."""

import pytest
import torch
from helpers import MODES, gradient, layers, make_objective, picture, relative_error, tiny_network
from styletransfer.objective.gradient import gradient_at

from styletransfer.modes import get_loss_mode
from styletransfer.objective.inputs import pair
from styletransfer.objective.tiled import TiledObjective


@pytest.mark.parametrize("mode", MODES)
def test_it_is_the_objectives_gradient_and_leaves_the_picture_alone(mode, content, style):
    objective = make_objective(mode, tiny_network(), content, style)
    image = picture(3).requires_grad_()
    expected = gradient(objective, image.detach())
    assert relative_error(gradient_at(objective, image), expected) == 0
    assert image.grad is None
    assert torch.equal(image, picture(3))
    assert all(term.module.loss is None for term in objective.terms)


def test_tiles_have_the_same_gradient(content, style):
    whole = make_objective("autograd_function", tiny_network(), content, style)
    tiled = TiledObjective(
        tiny_network(), get_loss_mode("autograd_function"), layers(), pair(content, style), tile=8
    )
    image = picture(3)
    assert relative_error(gradient_at(tiled, image), gradient_at(whole, image)) < 1e-12
