"""Training for films: the loss of two views, its gradient, and that it changes nothing at 0."""

import copy
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from helpers import layers, picture, relative_error

from styletransfer.commands.train_network.prepare import check, prepare
from styletransfer.commands.train_network.stability import (
    GRAIN,
    instability,
    random_flow,
    second_views,
)
from styletransfer.commands.train_network.trainer import NetworkTraining
from styletransfer.config import FeaturesConfig, TrainNetworkConfig
from styletransfer.errors import UserError
from styletransfer.films.motion import inside, warp
from styletransfer.networks.training import generator_at
from styletransfer.pictures import images

pytestmark = pytest.mark.usefixtures("tiny_vgg")


@pytest.fixture
def config(tmp_path: Path) -> TrainNetworkConfig:
    """A training of a moment, of one style, in float64."""
    for seed, name in enumerate(("oil.png", "preview.png")):
        images.write(tmp_path / name, picture(seed, 32, 40))
    return TrainNetworkConfig(
        style=str(tmp_path / "oil.png"),
        network="tiny",
        pictures=None,
        steps=4,
        batch=2,
        crop=32,
        style_size=24,
        preview=str(tmp_path / "preview.png"),
        device="cpu",
        precision="float64",
        stability=3.0,
        features=FeaturesConfig(name="vgg19", weights="random"),
        objective=layers(),
    )


def weights_of(run: NetworkTraining) -> torch.Tensor:
    return torch.cat([each.detach().flatten() for each in run.network.parameters()])


def chance() -> torch.Generator:
    return torch.Generator().manual_seed(4)


def first() -> torch.Tensor:
    return torch.cat([picture(seed, 64, 80) for seed in (1, 2)])


def test_what_paints_nothing_is_perfectly_stable() -> None:
    def grey(image, blend):
        return torch.full_like(image, 0.5)

    views = second_views(first(), chance())
    found = instability(grey, views, grey(first(), None), None).item()
    assert found == pytest.approx(0, abs=1e-20)


def test_of_a_network_that_copies_it_is_the_grain() -> None:
    def copied(image, blend):
        return image

    soft = 0.25 + 0.5 * first()  # nothing is clamped
    found = instability(copied, second_views(soft, chance()), soft, None).item()
    assert found == pytest.approx(GRAIN**2, rel=0.05)


def test_it_is_the_mean_over_what_both_views_show() -> None:
    def inverted(image, blend):
        return 1 - image.square()

    views = second_views(first(), chance())
    assert torch.equal(views.flow, random_flow(first(), chance()))
    difference = warp(inverted(first(), None), views.flow) - inverted(views.images, None)
    shown = inside(views.flow).expand(-1, 3, -1, -1)
    assert not shown.all()
    means = [each[seen].square().mean() for each, seen in zip(difference, shown, strict=True)]
    found = instability(inverted, views, inverted(first(), None), None).item()
    assert found == pytest.approx(sum(means).item() / 2)


def test_a_step_follows_the_gradient_of_both_losses(config: TrainNetworkConfig) -> None:
    run = NetworkTraining(prepare(config))
    before = copy.deepcopy(run.network)
    losses = run.advance()
    found = torch.cat([each.grad.flatten() for each in run.network.parameters()])
    generator = generator_at(config.seed, 0)
    contents = run.make(config.batch, generator).to(run.task.preview)
    torch.randint(1, (2,), generator=generator)
    blend = torch.ones(2, 1).double()
    pastiches = before(contents, blend)
    gradient, judged = run.judged(contents, pastiches.detach(), [0, 0])
    second = 3.0 * instability(before, second_views(contents, generator), pastiches, blend)
    expected = torch.autograd.grad((pastiches * gradient).sum() + second, list(before.parameters()))
    expected = torch.cat([each.flatten() for each in expected])
    expected = expected / max(1.0, float(expected.norm()))  # as it is cut
    assert relative_error(found, expected) < 1e-5
    assert losses["stability"].item() == pytest.approx(second.item())
    assert losses["total"].item() == pytest.approx((judged["total"] + second).item())


def test_without_it_a_step_is_what_it_was(config: TrainNetworkConfig) -> None:
    plain = NetworkTraining(prepare(replace(config, stability=0.0)))
    losses = plain.advance()
    assert "stability" not in losses
    other = NetworkTraining(prepare(config))
    other.advance()
    assert not torch.equal(weights_of(plain), weights_of(other))


def test_a_resumed_training_has_equal_bits(config: TrainNetworkConfig) -> None:
    whole = NetworkTraining(prepare(config))
    for _ in range(4):
        whole.advance()
    begun = NetworkTraining(prepare(config))
    begun.advance()
    second = NetworkTraining(prepare(config), copy.deepcopy(begun.state_dict()))
    for _ in range(3):
        second.advance()
    assert torch.equal(weights_of(second), weights_of(whole))
    with pytest.raises(UserError, match="other styles or settings"):
        NetworkTraining(prepare(replace(config, stability=1.0)), begun.state_dict())


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf")])
def test_a_weight_out_of_range_is_refused(config: TrainNetworkConfig, weight: float) -> None:
    with pytest.raises(UserError, match=f"stability={weight}"):
        check(replace(config, stability=weight))
