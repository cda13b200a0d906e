"""The descent at one scale: bounds, averages, plateaus, and losses that are not finite."""

import pytest
import torch
from helpers import Bowl, make_objective, picture

from styletransfer.objective import Losses
from styletransfer.objective.inputs import Protection
from styletransfer.optimize.canvas import RANGE_WEIGHT
from styletransfer.optimize.descent import Descent
from styletransfer.settings import OptimizerConfig

OPTIMIZERS = ["lbfgs", "adam"]
# Steps between two checks of the losses, the first after one step.
CHECKS = 10


def settings(name, averaging=0.0):
    return OptimizerConfig(name, 1.0 if name == "lbfgs" else 0.02, averaging=averaging)


def made(descent, objective):
    """Make the steps of a descent; return the picture before each step."""
    seen = []
    while not descent.is_over:
        image = descent.picture()
        descent.step(image, objective.evaluate(image))
        seen.append(image.detach())
    return seen


def finished(descent, objective):
    """Return the picture of a descent, and its losses."""
    image = descent.final()
    return descent.result(image, objective.evaluate(image))


@pytest.mark.parametrize("protected", [0.0, 0.3], ids=["free", "grey"])
@pytest.mark.parametrize("preconditioner", [0.0, 1.0])
def test_the_gradient_is_the_slope_of_the_value(preconditioner, protected, network, content, style):
    """The loss depends on the point alone, also out of range and in partly protected pixels."""
    objective = make_objective("loss_attribute", network, content, style)
    start, direction, h = 1.5 * picture(seed=3) - 0.25, picture(seed=4) - 0.5, 1e-6
    config = OptimizerConfig(preconditioner=preconditioner)
    protection = Protection(content, protected * picture(6)[:, :1]) if protected else None

    def at(shift):
        canvas = Descent(start, config, 1, protection).canvas
        with torch.no_grad():
            canvas.shift.add_(shift)
        before, totals = canvas.point(), []
        for _ in range(2):
            image = canvas.picture()
            totals.append(objective.evaluate(image).total)
            canvas.pull(image.grad)
        assert totals[0] == totals[1]
        assert torch.equal(canvas.point(), before)  # an evaluation does not change the point
        penalty = RANGE_WEIGHT / 2 * (before - before.clamp(0, 1)).square().sum()
        return (totals[0] * before.numel() + penalty).item(), canvas.shift.grad

    slope = (at(0)[1] * direction).sum().item()
    change = at(h * direction)[0] - at(-h * direction)[0]
    assert change / (2 * h) == pytest.approx(slope, rel=1e-5)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_pixels_stay_in_range_and_steps_end_at_the_lowest_point(name):
    """A step is one evaluation; for a target out of range the lowest point is on the border."""
    target = 1.6 * picture(seed=5) - 0.3
    bowl, start = Bowl(target), picture(seed=3)
    descent = Descent(start, settings(name), 200)
    seen = made(descent, bowl)
    image, losses = finished(descent, bowl)
    assert len(bowl.points) == len(seen) + 1
    for picture_ in (*seen, image):
        assert picture_.min() >= 0
        assert picture_.max() <= 1
    assert (image - target.clamp(0, 1)).abs().max() < 0.1
    assert (image - target.clamp(0, 1)).abs().mean() < 0.01
    assert losses.total == (image - target).square().mean()


class Told(Bowl):
    """A `Bowl` that returns given losses in place of its own."""

    def __init__(self, losses):
        super().__init__(picture(seed=5))
        self.losses = iter(losses)

    def evaluate(self, image):
        super().evaluate(image)
        return Losses({"bowl": torch.tensor(next(self.losses))})


def test_what_a_plateau_is(caplog):
    """The best losses are compared after 1, 11, 21 and 31 steps."""
    caplog.set_level("INFO")
    for losses, steps in (
        # After a step that raises the loss, the descent has time to lower it again.
        ([1.0] * 10 + [1.5] + [1.0] * 29, 21),
        # The best losses are compared, not the last.
        ([1.0] * 11 + [0.5] * 29, 11),
        # A decrease by more than a thousandth is no plateau.
        ([1.0] * 10 + [0.9985] * 30, 21),
    ):
        descent = Descent(picture(seed=3), OptimizerConfig(), 40)
        assert len(made(descent, Told(losses))) == steps
        assert caplog.messages[-1].startswith(f"the loss has settled after {steps} of 40 steps")
        for config in (OptimizerConfig(plateau=0.0), OptimizerConfig("adam", 1e-9)):
            assert len(made(Descent(picture(seed=3), config, 40), Told(losses))) == 40


def mean_of(images, averaging):
    """Return the running mean of images; late images weigh (1 - decay) decay^age."""
    mean = images[0]
    for step, image in enumerate(images[1:], 1):
        mean = torch.lerp(image, mean, min(averaging, step / (step + 1)))
    return mean


def test_the_average_is_the_running_mean():
    for averaging in (0.5, 0.99):
        bowl = Bowl(picture(seed=5))
        descent = Descent(picture(seed=3), settings("adam", averaging), 12)
        made(descent, bowl)
        image, losses = finished(descent, bowl)
        torch.testing.assert_close(image, mean_of(bowl.points[:12], averaging))
        assert losses.total == (image - bowl.target).square().mean()
    # The first steps have equal weights.
    torch.testing.assert_close(image, torch.cat(bowl.points[:12]).mean(dim=0, keepdim=True))


def test_adam_keeps_its_moments_at_the_next_scale():
    """Three steps and three more at an equal size give the same image as six steps."""
    config, bowl = settings("adam"), Bowl(picture(seed=5))
    whole, first = (Descent(0.3 + 0.4 * picture(seed=3), config, steps) for steps in (6, 3))
    made(whole, bowl), made(first, bowl)
    second = Descent(first.canvas.point(), config, 3)
    moments = first.momentum()
    second.warm_start(moments)
    made(second, bowl)
    torch.testing.assert_close(second.canvas.point(), whole.canvas.point(), rtol=1e-14, atol=0)
    larger = Descent(picture(3, 23, 28), config, 3)
    larger.warm_start(moments)
    assert larger.momentum()["exp_avg"].shape == (1, 3, 23, 28)
    lbfgs = Descent(picture(seed=3), settings("lbfgs"), 3)
    made(lbfgs, bowl)
    assert lbfgs.momentum() is None


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("averaging", [0.0, 0.9])
@pytest.mark.parametrize("first", [1, 7, 25])
def test_nan_ends_with_the_best_picture(name, averaging, first):
    start = picture(seed=3)
    bowl = Bowl(picture(seed=5), broken=range(first, 1000))
    descent = Descent(start, settings(name, averaging), 100)
    # The next check finds the NaN.
    assert len(made(descent, bowl)) == len(bowl.points) == 1 + -(-(first - 1) // CHECKS) * CHECKS
    assert descent.ending.problem.startswith(
        "the loss is not finite; lower optimizer.learning_rate"
    )
    for picture_ in (descent.best.image, descent.best.picture()):
        assert picture_.isfinite().all()
        assert picture_.min() >= 0
        assert picture_.max() <= 1
    best = min([start, *bowl.points[: first - 1]], key=lambda point: (point - bowl.target).norm())
    assert torch.equal(descent.best.image, best)
