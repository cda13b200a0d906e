"""The optimiser loop: scales, starts, bounds, averages, and every way in which a run can end."""

import json
import logging
import math
import os
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from helpers import (
    MODES,
    Bowl,
    elastic,
    layers,
    make_objective,
    picture,
    run_settings,
    tiny_network,
    with_bowl,
)
from torch.overrides import TorchFunctionMode

from styletransfer.config import OptimizerConfig
from styletransfer.errors import UserError
from styletransfer.job import schedule
from styletransfer.job.job import Job
from styletransfer.job.schedule import DETAIL, check_run, enlarge, pyramid, steps_at_scale
from styletransfer.modes import get_loss_mode
from styletransfer.objective.inputs import pair
from styletransfer.objective.terms import Losses
from styletransfer.optimize import run as run_module
from styletransfer.optimize.descent import RESTARTS, STEPS_BETWEEN_CHECKS, Descent
from styletransfer.optimize.run import complete_run
from styletransfer.pictures.images import resize, scaled_size

CURVES = Path(__file__).with_name("loss_curves.json")
OPTIMIZERS = ["lbfgs", "adam"]
MODE = get_loss_mode("loss_attribute")


def run(config, content, style, network=None, mode=MODE, **options):
    """Return the result and the iterates."""
    iterates = []
    network = network or tiny_network()
    result = complete_run(
        Job(config, network, mode, pair(content, style), **options), [iterates.append]
    )
    return result, iterates


# The pyramid.


@pytest.mark.parametrize("size", [1, 17, 128, 180, 512, 1000, 4096])
@pytest.mark.parametrize("scales", [0, 1, 2, 5])
@pytest.mark.parametrize("steps", [1, 3, 500])
def test_pyramid(size, scales, steps):
    sides = pyramid(size, scales, steps)
    assert sides[-1] == size
    assert sides == sorted(sides)
    assert 1 <= len(sides) <= steps
    assert all(math.isclose(fine, coarse * 2, abs_tol=2) for coarse, fine in pairwise(sides))
    if scales:
        assert len(sides) <= scales
    else:
        assert len(sides) == 1 or sides[0] >= schedule.SMALLEST_SCALE


def test_a_finer_scale_brings_back_half_the_detail_of_the_start():
    start = picture(32, 24) * 0.5 + 0.25
    height, width = size = (start.shape[2], start.shape[3])
    coarse = resize(start, (height // 2, width // 2))
    blur = resize(coarse, size)
    assert torch.equal(enlarge(start, start, size, "content"), start)
    torch.testing.assert_close(
        enlarge(coarse, start, size, "content"), torch.lerp(blur, start, DETAIL)
    )
    # What was done to the coarse picture stays done.
    torch.testing.assert_close(
        enlarge(coarse + 0.1, start, size, "style"), torch.lerp(blur, start, DETAIL) + 0.1
    )
    assert torch.equal(enlarge(coarse, start, size, "noise"), blur)
    bright = torch.ones_like(coarse)
    assert float(enlarge(bright, start, size, "content").max()) == 1


def test_pyramid_has_as_many_scales_as_asked_for():
    assert pyramid(512, 1, 100) == [512]
    assert pyramid(512, 0, 100) == pyramid(512, 3, 100) == [128, 256, 512]
    assert pyramid(512, 3, 2) == [256, 512]


@pytest.mark.parametrize("steps", range(1, 30))
@pytest.mark.parametrize("scales", [1, 2, 3, 7])
def test_share(steps, scales):
    scales = min(scales, steps)
    shares = [steps_at_scale(steps, scales, index) for index in range(scales)]
    assert sum(shares) == steps
    assert min(shares) >= 1
    assert shares == sorted(shares)
    even = shares if scales <= 3 else shares[:-1]
    assert max(even) - min(even) <= 1


def test_a_fourth_scale_takes_its_steps_from_the_coarse_ones():
    assert [steps_at_scale(100, 3, index) for index in range(3)] == [33, 33, 34]
    assert [steps_at_scale(100, 4, index) for index in range(4)] == [19, 19, 20, 42]
    assert [steps_at_scale(5, 5, index) for index in range(5)] == [1, 1, 1, 1, 1]


def test_scales_follow_one_another(content, style):
    config = run_settings(size=20, steps=8, scales=3)
    result, iterates = run(config, content, style)
    assert result.steps == 8
    assert [i.step for i in iterates] == list(range(1, 9))
    assert [i.scale for i in iterates] == [1, 1, 2, 2, 2, 3, 3, 3]
    assert {(i.steps, i.scales) for i in iterates} == {(8, 3)}
    shapes = [scaled_size((16, 20), side) for side in (5, 10, 20)]
    assert [tuple(i.image.shape[2:]) for i in iterates] == [shapes[i.scale - 1] for i in iterates]


@pytest.mark.parametrize("size", [9, 20, 33])
def test_pastiche_has_the_contents_aspect_and_the_size(content, style, size):
    result, _ = run(run_settings(size=size, steps=2), content, style)
    assert result.image.shape == (1, 3, *scaled_size((16, 20), size))
    assert result.image.dtype == torch.float32
    assert result.image.device.type == "cpu"


def test_each_scale_starts_from_the_last(content, style):
    _, iterates = run(run_settings(size=20, steps=6, scales=2, init="style"), content, style)
    coarse, _ = run(run_settings(size=10, steps=3, init="style"), content, style)
    expected = enlarge(coarse.image, style.float(), (16, 20), "style")
    assert torch.allclose(iterates[3].image.float(), expected, atol=1e-6)


# Starts.


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_init_content_and_style(content, style, optimizer):
    for init, image in (("content", content), ("style", style)):
        _, iterates = run(run_settings(optimizer, init=init), content, style)
        assert torch.equal(iterates[0].image, resize(image, (16, 20)))


def test_init_noise_follows_the_seed(content, style):
    starts = [
        run(run_settings(init="noise", seed=seed), content, style)[1][0].image for seed in (1, 1, 2)
    ]
    assert torch.equal(starts[0], starts[1])
    assert not torch.equal(starts[0], starts[2])
    assert abs(starts[0].mean() - 0.5) < 0.05


def test_a_given_start_wins(content, style):
    start = picture(seed=9, height=8, width=8)
    _, iterates = run(run_settings(init="noise"), content, style, start=start)
    assert torch.equal(iterates[0].image, resize(start, (16, 20)))


def test_unknown_init(content, style):
    with pytest.raises(UserError, match="unknown init 'mirror'; choose content, style, noise or"):
        run(run_settings(init="mirror"), content, style)


# The optimisation.


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("mode", MODES)
def test_loss_curve(mode, optimizer, content, style):
    """Fixed seeds, float64, five steps. REWRITE_LOSS_CURVES=1 takes today's numbers as right."""
    _, iterates = run(run_settings(optimizer), content, style, mode=get_loss_mode(mode))
    curve = [float(i.losses.total) for i in iterates]
    curves = json.loads(CURVES.read_text()) if CURVES.exists() else {}
    if os.environ.get("REWRITE_LOSS_CURVES") == "1":
        CURVES.write_text(json.dumps(curves | {optimizer: curve}, indent=2) + "\n")
    else:
        assert curve == pytest.approx(curves[optimizer], rel=1e-6)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_loss_falls(optimizer, content, style):
    result, iterates = run(run_settings(optimizer, steps=25), content, style)
    assert result.losses["total"] < 0.8 * iterates[0].losses.total
    assert result.problem is None
    assert not result.interrupted


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_losses_are_those_of_the_result(optimizer, content, style):
    result, _ = run(run_settings(optimizer, steps=10), content, style)
    style = resize(style, scaled_size((18, 14), 20))
    objective = make_objective("loss_attribute", tiny_network(), content, style)
    again = objective.evaluate(result.image.double().requires_grad_()).as_floats()
    assert result.losses == pytest.approx(again, rel=1e-4)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_equal_seeds_give_equal_pictures(optimizer, content, style):
    config = run_settings(optimizer, init="noise", scales=2, seed=3)
    one, two = (run(config, content, style)[0].image for _ in range(2))
    assert torch.equal(one, two)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_pixels_stay_in_range(optimizer, content, style):
    settings = OptimizerConfig(name=optimizer, learning_rate=3.0)
    config = run_settings(steps=12, optimizer=settings, objective=layers(normalization="none"))
    result, iterates = run(config, content, style)
    for image in [*(i.image for i in iterates), result.image]:
        assert image.min() >= 0
        assert image.max() <= 1
    assert (iterates[-1].image - iterates[0].image).abs().max() > 0.3  # it did move


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_closure_moves_nothing(optimizer, network, content, style):
    """Not even where pixels are out of range; and it is a plain function of the point."""
    objective = make_objective("loss_attribute", network, content, style)
    start = 1.5 * picture(seed=3) - 0.25
    descent = Descent(objective, start, OptimizerConfig(name=optimizer))
    before = descent.point()
    values = [descent.closure().item() for _ in range(2)]
    assert torch.equal(descent.point(), before)
    assert values[0] == values[1]


@pytest.mark.parametrize("preconditioner", [0.0, 1.0])
def test_closures_gradient_is_the_slope_of_its_value(preconditioner, network, content, style):
    objective = make_objective("loss_attribute", network, content, style)
    start, direction, h = 1.5 * picture(seed=3) - 0.25, picture(seed=4) - 0.5, 1e-6

    def at(shift):
        descent = Descent(objective, start, OptimizerConfig(preconditioner=preconditioner))
        with torch.no_grad():
            descent.shift.add_(shift)
        return descent.closure().item(), descent.shift.grad

    slope = (at(0)[1] * direction).sum().item()
    change = at(h * direction)[0] - at(-h * direction)[0]
    assert change / (2 * h) == pytest.approx(slope, rel=1e-5)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_each_step_is_one_evaluation(optimizer, monkeypatch, content, style):
    bowl = with_bowl(monkeypatch, Bowl(picture(seed=5)))
    run(run_settings(optimizer, steps=7), content, style)
    assert len(bowl.points) == 7 + 1  # and one where the last step led


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_steps_end_at_the_lowest_point(optimizer, monkeypatch, content, style):
    target = 0.2 + 0.6 * picture(seed=5)
    with_bowl(monkeypatch, Bowl(target))
    result, _ = run(run_settings(optimizer, steps=200), content, style)
    assert (result.image - target).abs().max() < 0.01


def test_a_plateau_ends_a_scale_early(caplog):
    """A bowl on a floor of 1: its best loss soon falls by less than a thousandth in ten steps."""
    caplog.set_level("INFO")

    class Raised(Bowl):
        def evaluate(self, image):
            return Losses({"bowl": super().evaluate(image).total + 1})

    for plateau, made in ((0.001, range(10, 60)), (0.0, range(100, 101))):
        settings = OptimizerConfig(plateau=plateau)
        descent = Descent(Raised(picture(seed=5)), picture(seed=3), settings)
        assert len(list(descent.run(100))) in made
    assert caplog.text.count("the loss has settled after") == 1
    adam = Descent(Raised(picture(seed=5)), picture(seed=3), OptimizerConfig("adam", 1e-9))
    assert len(list(adam.run(30))) == 30


class Told(Bowl):
    """A bowl that says its losses are others."""

    def __init__(self, losses):
        super().__init__(picture(seed=5))
        self.losses = losses

    def evaluate(self, image):
        super().evaluate(image)
        return Losses({"bowl": torch.tensor(self.losses[len(self.points) - 1])})


@pytest.mark.parametrize(
    ("losses", "made"),
    [
        ([1.0] * 40, 11),
        # Where a step has gone too far it is left time to find back.
        ([1.0] * 10 + [1.5] + [1.0] * 29, 21),
        # The best loss is what counts.
        ([1.0] * 11 + [0.5] * 29, 11),
        ([1.0] * 10 + [0.5] * 30, 21),
        # A fresh start is no plateau.
        ([1.0] * 10 + [math.nan] + [1.0] * 29, 31),
    ],
)
def test_what_a_plateau_is(losses, made):
    """Looks after 1, 11, 21 and 31 steps compare the best losses."""
    descent = Descent(Told(losses), picture(seed=3), OptimizerConfig())
    assert len(list(descent.run(40))) == made


def test_channels_last_pictures_do_not_crash_lbfgs(content, style):
    content = content.to(memory_format=torch.channels_last)
    result, _ = run(run_settings(), content, style)
    assert result.image.isfinite().all()


def test_settings_leave_the_callers_tensors_alone(content, style):
    before = content.clone(), style.clone()
    run(run_settings(steps=3), content, style)
    assert torch.equal(content, before[0])
    assert torch.equal(style, before[1])
    assert not content.requires_grad


# Averages and moments.


def test_average_of_the_first_iterates_is_their_mean(monkeypatch, content, style):
    bowl = with_bowl(monkeypatch, Bowl(picture(seed=5)))
    settings = OptimizerConfig(name="adam", learning_rate=0.05, averaging=0.99)
    result, _ = run(run_settings(steps=6, optimizer=settings), content, style)
    mean = torch.cat(bowl.points[:6]).mean(dim=0, keepdim=True)
    assert torch.allclose(result.image.double(), mean, atol=1e-6)


def test_average_forgets(monkeypatch, content, style):
    """Late iterates weigh (1 - decay) decay^age."""
    bowl = with_bowl(monkeypatch, Bowl(picture(seed=5)))
    settings = OptimizerConfig(name="adam", learning_rate=0.05, averaging=0.5)
    result, _ = run(run_settings(steps=12, optimizer=settings), content, style)
    tail = sum(0.5 ** (age + 1) * bowl.points[11 - age] for age in range(11))
    assert (result.image - tail).abs().max() < 2 * 0.5**11


def test_average_tames_a_jittering_optimizer(monkeypatch, content, style):
    target = 0.2 + 0.6 * picture(seed=5)

    def distance(averaging):
        with_bowl(monkeypatch, Bowl(target))
        settings = OptimizerConfig(name="adam", learning_rate=0.3, averaging=averaging)
        result, _ = run(run_settings(steps=60, optimizer=settings), content, style)
        return result.losses["bowl"]

    assert distance(0.9) < 2 * distance(0.0) + 1e-3


def test_adams_moments_go_on_at_the_next_scale():
    """At an unchanged size, three steps and three more are six."""
    config = OptimizerConfig(name="adam", learning_rate=0.02)
    start, target = 0.3 + 0.4 * picture(seed=3), picture(seed=5)
    whole, first = (Descent(Bowl(target), start, config) for _ in range(2))
    list(whole.run(6))
    list(first.run(3))
    second = Descent(Bowl(target), first.point(), config)
    second.warm_start(first.momentum())
    list(second.run(3))
    assert torch.allclose(second.point(), whole.point(), rtol=1e-14, atol=0)


def test_adams_moments_are_resized():
    config = OptimizerConfig(name="adam", learning_rate=0.02)
    first = Descent(Bowl(picture(seed=5)), picture(seed=3), config)
    list(first.run(3))
    second = Descent(Bowl(picture(5, 23, 28)), picture(3, 23, 28), config)
    second.warm_start(first.momentum())
    state, old = second.optimizer.state[second.shift], first.optimizer.state[first.shift]
    assert state["exp_avg"].shape == state["exp_avg_sq"].shape == (1, 3, 23, 28)
    assert (state["exp_avg_sq"] >= 0).all()
    assert state["exp_avg"].mean() == pytest.approx(old["exp_avg"].mean().item(), rel=0.2)
    assert state["step"] == 3


def test_lbfgs_starts_afresh_at_the_next_scale():
    descent = Descent(Bowl(picture(seed=5)), picture(seed=3), OptimizerConfig())
    list(descent.run(3))
    assert descent.momentum() is None


class Syncs(TorchFunctionMode):
    """Counts what waits for the device. Adam's own step counter, in float32, never left the CPU."""

    count = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        waits = (torch.Tensor.item, torch.Tensor.tolist, torch.Tensor.__bool__)
        if function in (*waits, torch.Tensor.__float__) and args[0].dtype != torch.float32:
            self.count += 1
        return function(*args, **(kwargs or {}))


def test_loop_waits_for_the_device_only_when_it_checks():
    descent = Descent(
        Bowl(picture(seed=5)), picture(seed=3), OptimizerConfig("adam", 0.01, averaging=0.9)
    )
    with Syncs() as syncs:
        list(descent.run(2 * STEPS_BETWEEN_CHECKS))
    assert 1 <= syncs.count <= 3


# Losses that are not finite.

NAN_CASES = [(name, averaging) for name in OPTIMIZERS for averaging in (0.0, 0.9)]


def jumpy(name, averaging):
    return OptimizerConfig(name, 1.0 if name == "lbfgs" else 0.02, averaging=averaging)


@pytest.mark.parametrize(("name", "averaging"), NAN_CASES)
@pytest.mark.parametrize("which", [1, 8])
def test_one_nan_is_overcome(which, name, averaging, monkeypatch, content, style, caplog):
    bowl = with_bowl(monkeypatch, Bowl(picture(seed=5), broken=[which]))
    result, iterates = run(run_settings(steps=60, optimizer=jumpy(name, averaging)), content, style)
    assert result.problem is None
    assert result.steps == len(iterates) == 60
    assert result.image.isfinite().all()
    assert result.losses["total"] < 0.5 * (content - bowl.target).square().mean()
    warnings = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert [r.message for r in warnings] == [
        "the loss is no longer finite; going on from the best picture so far"
    ]


@pytest.mark.parametrize(("name", "averaging"), NAN_CASES)
@pytest.mark.parametrize(
    ("first", "steps"), [(f, s) for f in (1, 2, 7, 25) for s in (1, 2, 8, 100) if f <= s]
)
def test_nan_for_good_ends_with_the_best_picture(
    name, averaging, first, steps, monkeypatch, content, style, caplog
):
    bowl = with_bowl(monkeypatch, Bowl(picture(seed=5), broken=range(first, 1000)))
    result, iterates = run(
        run_settings(steps=steps, optimizer=jumpy(name, averaging)), content, style
    )
    assert result.image.isfinite().all()
    assert result.image.min() >= 0
    assert result.image.max() <= 1
    assert len([r for r in caplog.records if r.levelno == logging.WARNING]) <= 1
    if steps == 100:
        assert result.problem is not None
        assert "not finite" in result.problem
        assert "\n" not in result.problem
        assert len(iterates) == result.steps < 100
    if first == 1:
        assert result.problem is not None
        assert torch.equal(result.image, content.float())
    if result.problem is None and not averaging:
        start = (content - bowl.target).square().mean()
        assert (result.image - bowl.target).square().mean() <= start + 1e-6


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_restart_begins_at_the_best_picture(name):
    """The eleventh look finds that the loss is not finite; the next step is as if it were new."""
    bowl = Bowl(picture(seed=5), broken=[11])
    descent = Descent(bowl, picture(seed=3), jumpy(name, 0.9))
    pairs = list(descent.run(14))
    best = min(bowl.points[:10], key=lambda point: (point - bowl.target).norm())
    assert torch.equal(bowl.points[11], best)
    fresh = Bowl(bowl.target)
    assert [image.shape for _, image in Descent(fresh, best, jumpy(name, 0.0)).run(3)]
    assert torch.equal(bowl.points[12], fresh.points[1])
    assert torch.equal(bowl.points[13], fresh.points[2])
    # So is the mean.
    assert torch.equal(descent.best.mean, mean_of([image for _, image in pairs[11:]], 11))


def mean_of(images, first):
    """As `averaging=0.9` has it, for images from step `first` on."""
    mean = images[0]
    for step, image in enumerate(images[1:], first + 1):
        mean = torch.lerp(image, mean, min(0.9, step / (step + 1)))
    return mean


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_restarts_are_counted(name, caplog):
    """The first look, then one every ten steps; the last fresh start is not the end."""
    start = picture(seed=3)
    bowl = Bowl(picture(seed=5), broken=range(1, 1000))
    descent = Descent(bowl, start, jumpy(name, 0.0))
    made = len(list(descent.run(1000)))
    assert made == len(bowl.points) == 1 + RESTARTS * STEPS_BETWEEN_CHECKS
    assert descent.problem.startswith(f"the loss was not finite {RESTARTS + 1} times")
    assert caplog.text.count("no longer finite") == 1
    almost = Descent(Bowl(bowl.target, range(1, made - 9)), start, jumpy(name, 0.0))
    assert len(list(almost.run(made + 3))) == made + 3
    assert almost.problem is None


def test_nan_at_the_end_of_a_scale_does_not_break_adams_warm_start(monkeypatch, content, style):
    """After a fresh start there are no moments to carry on."""
    bowls = [Bowl(resize(picture(seed=5), (8, 10)), broken=[3]), Bowl(picture(seed=5))]
    monkeypatch.setattr(run_module, "make_objective", lambda *args: elastic(bowls.pop(0)))
    result, _ = run(run_settings("adam", steps=6, scales=2), content, style)
    assert result.problem is None
    assert result.image.isfinite().all()


def test_interrupt_right_after_a_nan_still_has_a_picture(monkeypatch, content, style):
    """The mean is spoilt then, and nothing has checked yet."""
    with_bowl(monkeypatch, Bowl(picture(seed=5), broken=range(3, 9), raises=7))
    result, _ = run(run_settings(steps=20, optimizer=jumpy("adam", 0.9)), content, style)
    assert result.interrupted
    assert result.image.isfinite().all()


# Ctrl-C.


def interrupt_at(step):
    def callback(iterate):
        if iterate.step == step:
            raise KeyboardInterrupt

    return callback


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("step", [1, 3, 5, 6])
def test_ctrl_c_in_a_callback(optimizer, step, content, style):
    config = run_settings(optimizer, steps=6, scales=2)
    result = complete_run(
        Job(config, tiny_network(), MODE, pair(content, style)), [interrupt_at(step)]
    )
    assert result.interrupted
    assert result.problem is None
    assert result.steps == step
    assert result.losses == {}
    assert result.image.shape == (1, 3, 16, 20)  # of full size, even from a coarse scale
    assert result.image.isfinite().all()


@pytest.mark.parametrize("raises", [1, 2, 5, 7])
def test_ctrl_c_in_an_evaluation(raises, monkeypatch, content, style):
    bowl = with_bowl(monkeypatch, Bowl(picture(seed=5), raises=raises))
    result, iterates = run(run_settings(steps=6), content, style)
    assert result.interrupted
    assert result.steps == len(iterates) == raises - 1
    best = min(bowl.points[: raises - 1] or [content], key=lambda p: (p - bowl.target).norm())
    assert torch.allclose(result.image, best.float())


def test_ctrl_c_between_two_scales(monkeypatch, content, style):
    """While the next scale's targets are computed."""
    real, made = run_module.make_objective, []

    def second_is_interrupted(*args):
        made.append(args)
        if len(made) == 2:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(run_module, "make_objective", second_is_interrupted)
    result, iterates = run(run_settings(steps=8, scales=2), content, style)
    assert result.interrupted
    assert result.steps == len(iterates) == 4
    assert result.image.shape == (1, 3, 16, 20)
    assert (result.image - content).abs().max() > 1e-3  # not the start: what the first scale made


def test_only_a_run_that_came_to_its_end_is_finished(content, style):
    job = Job(run_settings(), tiny_network(), MODE, pair(content, style))
    done = complete_run(job)
    assert done.finished("a run") is done
    with pytest.raises(KeyboardInterrupt):
        complete_run(job, [interrupt_at(2)]).finished("a run")
    with pytest.raises(UserError, match=r"^a run: it is late$"):
        replace(done, problem="it is late").finished("a run")


# Settings that cannot work.


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"size": 0}, "size=0 must be 1 or more"),
        ({"steps": 0}, "steps=0 must be 1 or more"),
        ({"steps": -3}, "steps=-3 must be 1 or more"),
        ({"scales": -1}, "scales=-1 must be 0 or more"),
        ({"seed": -1}, "seed=-1 must be 0 or more"),
        ({"seed": 2**70}, "must be below 2"),
        ({"optimizer": OptimizerConfig(name="sgd")}, "unknown optimizer 'sgd'; choose lbfgs or"),
        ({"optimizer": OptimizerConfig(history=0)}, "optimizer.history=0 must be 1 or more"),
        ({"optimizer": OptimizerConfig(learning_rate=0.0)}, "learning_rate=0.0 must be above 0"),
        ({"optimizer": OptimizerConfig(learning_rate=math.nan)}, "learning_rate=nan"),
        ({"optimizer": OptimizerConfig(learning_rate=math.inf)}, "learning_rate=inf"),
        (
            {"optimizer": OptimizerConfig(learning_rate=1e308)},
            r"e\+308 must be above 0",
        ),
        ({"optimizer": OptimizerConfig(preconditioner=-1.0)}, "preconditioner=-1.0 must be finite"),
        ({"optimizer": OptimizerConfig(preconditioner=math.nan)}, "preconditioner=nan"),
        ({"optimizer": OptimizerConfig(plateau=1.0)}, "plateau=1.0 must be 0 or more, below 1"),
        ({"optimizer": OptimizerConfig(plateau=math.nan)}, "plateau=nan"),
        ({"optimizer": OptimizerConfig(averaging=1.0)}, "averaging=1.0 must be 0 or more, below 1"),
        ({"optimizer": OptimizerConfig(averaging=math.nan)}, "averaging=nan"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(UserError, match=message):
        check_run(run_settings(**settings))


@pytest.mark.cuda
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_stylize_on_a_gpu(optimizer, content, style):
    expected, _ = run(run_settings(optimizer), content, style)
    actual, _ = run(run_settings(optimizer), content, style, network=tiny_network().cuda())
    assert actual.image.device.type == "cpu"
    assert torch.allclose(actual.image, expected.image, atol=1e-4)
