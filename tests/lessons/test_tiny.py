"""The tiny model: trained by the book, on one side by hand-written Functions alone."""

from collections import Counter

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

from styletransfer import lessons
from styletransfer.lessons.tiny import (
    BATCH,
    INPUTS,
    LEARNING_RATE,
    largest_difference,
    tiny_model,
    train_tiny,
)

FUNCTIONS = (lessons.LinearFunction, lessons.ReLUFunction, lessons.ScaleFunction)


@pytest.fixture
def entered(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count how often autograd enters each hand-written backward, from now on."""
    counts: Counter[str] = Counter()

    def counting(function: type[Function]) -> None:
        backward = function.backward

        def count(ctx: object, *grads: Tensor) -> object:
            counts[function.__name__] += 1
            return backward(ctx, *grads)

        monkeypatch.setattr(function, "backward", staticmethod(count))

    for function in FUNCTIONS:
        counting(function)
    return counts


def test_tiny_training_equals_autograds_over_50_steps(entered: Counter[str]) -> None:
    built_in = train_tiny(handwritten=False)
    assert not entered
    handwritten = train_tiny(handwritten=True)
    assert entered == {"LinearFunction": 100, "ScaleFunction": 50, "ReLUFunction": 50}
    assert len(built_in.losses) == 50
    assert built_in.losses[-1] < 0.5 * built_in.losses[0]
    assert largest_difference(built_in, handwritten) <= 1e-12


@pytest.mark.parametrize("handwritten", [False, True])
def test_each_step_descends_along_its_own_gradient_alone(handwritten: bool) -> None:
    torch.manual_seed(3)
    model = tiny_model(handwritten)
    x = torch.randn(BATCH, INPUTS, dtype=torch.float64)
    target = torch.stack([x.sin().sum(1), x.prod(1)], dim=1)
    for _ in range(4):
        loss = (model(x) - target).square().mean()
        slopes = torch.autograd.grad(loss, list(model.parameters()))
        with torch.no_grad():
            for parameter, slope in zip(model.parameters(), slopes, strict=True):
                parameter -= LEARNING_RATE * slope
    trained = train_tiny(handwritten, seed=3, steps=4).parameters
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(trained[name], parameter.detach(), rtol=1e-12, atol=1e-12)


def test_tiny_training_leaves_the_callers_random_state_alone() -> None:
    before = torch.get_rng_state()
    train_tiny(handwritten=True, seed=5, steps=1)
    assert torch.equal(torch.get_rng_state(), before)
    with pytest.raises(ValueError, match="at least 1, not 0"):
        train_tiny(handwritten=True, steps=0)
