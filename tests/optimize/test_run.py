"""Runs: scales, starts, what is protected, and every way in which one can end."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from helpers import (
    MODES,
    Bowl,
    elastic,
    make_objective,
    picture,
    run_settings,
    tiny_network,
    with_bowl,
)

from styletransfer.config import OptimizerConfig
from styletransfer.errors import UserError
from styletransfer.job.job import Job, enlarge, pyramid
from styletransfer.modes import get_loss_mode
from styletransfer.objective.inputs import pair
from styletransfer.optimize import run as run_module
from styletransfer.optimize.run import Run, complete_run
from styletransfer.pictures.images import resize, scaled_size

CURVES = Path(__file__).with_name("loss_curves.json")
OPTIMIZERS = ["lbfgs", "adam"]
MODE = get_loss_mode("loss_attribute")


def run(config, content, style, network=None, mode=MODE, **options):
    """Return the result and the iterates."""
    iterates = []
    job = Job(config, network or tiny_network(), mode, pair(content, style), **options)
    return complete_run(job, [iterates.append]), iterates


# Scales and starts.


@pytest.mark.parametrize("size", [9, 20, 33])
def test_scales_follow_one_another(size, content, style):
    before = content.clone(), style.clone()
    result, iterates = run(run_settings(size=size, steps=8, scales=3), content, style)
    assert result.steps == 8
    assert [i.step for i in iterates] == list(range(1, 9))
    assert [i.scale for i in iterates] == [1, 1, 2, 2, 2, 3, 3, 3]
    assert {(i.steps, i.scales) for i in iterates} == {(8, 3)}
    shapes = [scaled_size((16, 20), side) for side in pyramid(size, 3, 8)]
    assert [tuple(i.image.shape[2:]) for i in iterates] == [shapes[i.scale - 1] for i in iterates]
    assert result.image.shape == (1, 3, *scaled_size((16, 20), size))
    assert (result.image.dtype, result.image.device.type) == (torch.float32, "cpu")
    # The caller's pictures stay as they are.
    assert torch.equal(content, before[0])
    assert torch.equal(style, before[1])


def test_each_scale_starts_from_the_last(content, style):
    _, iterates = run(run_settings(size=20, steps=6, scales=2, init="style"), content, style)
    coarse, _ = run(run_settings(size=10, steps=3, init="style"), content, style)
    expected = enlarge(coarse.image, style.float(), (16, 20), "style")
    assert torch.allclose(iterates[3].image.float(), expected, atol=1e-6)


def test_starts(content, style):
    def first(**settings):
        start = settings.pop("start", None)
        return run(run_settings(steps=1, **settings), content, style, start=start)[1][0].image

    assert torch.equal(first(init="content"), content)
    assert torch.equal(first(init="style"), resize(style, (16, 20)))
    given = picture(seed=9, height=8, width=8)
    assert torch.equal(first(init="noise", start=given), resize(given, (16, 20)))
    one, again, other = (first(init="noise", seed=seed) for seed in (1, 1, 2))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    assert abs(one.mean() - 0.5) < 0.05
    with pytest.raises(UserError, match="unknown init 'mirror'; choose content, style, noise or"):
        first(init="mirror")


# What comes of it.


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("mode", MODES)
def test_the_losses_of_every_step_are_as_ever(mode, optimizer, content, style):
    """Fixed seeds, float64, five steps. REWRITE_LOSS_CURVES=1 takes today's numbers as right."""
    result, iterates = run(run_settings(optimizer), content, style, mode=get_loss_mode(mode))
    curve = [float(i.losses.total) for i in iterates]
    curves = json.loads(CURVES.read_text()) if CURVES.exists() else {}
    if os.environ.get("REWRITE_LOSS_CURVES") == "1":
        CURVES.write_text(json.dumps(curves | {optimizer: curve}, indent=2) + "\n")
    else:
        assert curve == pytest.approx(curves[optimizer], rel=1e-6)
    # And the result's are those of the result.
    objective = make_objective(mode, tiny_network(), content, resize(style, (20, 16)))
    again = objective.evaluate(result.image.double().requires_grad_()).as_floats()
    assert result.losses == pytest.approx(again, rel=1e-4)
    assert (result.problem, result.interrupted) == (None, False)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_protected_pixels_stay_and_grey_ones_are_mixtures(optimizer, content, style, monkeypatch):
    """The gradient of a mixture holds the factor of what is free: its slope is as any other's."""
    protected = torch.linspace(0, 1, 20, dtype=torch.float64).expand(1, 1, 16, 20)
    pictures = replace(pair(content, style), protected=protected)
    bowl = with_bowl(monkeypatch, Bowl(1 - content))
    config = run_settings(optimizer, steps=30, init="noise")
    job = Job(config, tiny_network(), MODE, pictures)
    result = Run(job).complete()
    for point in (*bowl.points, result.image, Run(job).result().image):
        assert torch.equal(point[..., -1], content[..., -1].to(point))
        assert ((point - content).abs() <= (1 - protected) + 1e-6).all()
    # The clear half has gone most of its way.
    assert (result.image - bowl.target)[..., :5].abs().mean() < 0.2


# Ctrl-C, and memory that is short.


def interrupt_at(step):
    def callback(iterate):
        if iterate.step == step:
            raise KeyboardInterrupt

    return callback


@pytest.mark.parametrize("step", [1, 3, 6])
def test_ctrl_c_in_a_callback(step, content, style):
    job = Job(run_settings(steps=6, scales=2), tiny_network(), MODE, pair(content, style))
    result = complete_run(job, [interrupt_at(step)])
    assert (result.interrupted, result.problem, result.losses) == (True, None, {})
    assert result.steps == step
    assert result.image.shape == (1, 3, 16, 20)  # of full size, even from a coarse scale
    assert result.image.isfinite().all()


@pytest.mark.parametrize("raises", [1, 2, 7])
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


def test_nan_at_the_end_of_a_scale_does_not_break_adams_warm_start(monkeypatch, content, style):
    """After a fresh start there are no moments to carry on."""
    bowls = [Bowl(resize(picture(seed=5), (8, 10)), broken=[3]), Bowl(picture(seed=5))]
    monkeypatch.setattr(run_module, "make_objective", lambda *args: elastic(bowls.pop(0)))
    result, _ = run(run_settings("adam", steps=6, scales=2), content, style)
    assert result.problem is None
    assert result.image.isfinite().all()


def test_ctrl_c_right_after_a_nan_still_leaves_a_picture(monkeypatch, content, style):
    """The mean is spoilt then, and nothing has checked yet."""
    with_bowl(monkeypatch, Bowl(picture(seed=5), broken=range(3, 9), raises=7))
    averaged = OptimizerConfig("adam", 0.02, averaging=0.9)
    result, _ = run(run_settings(steps=20, optimizer=averaged), content, style)
    assert result.interrupted
    assert result.image.isfinite().all()


@pytest.mark.cuda
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_run_on_a_gpu(optimizer, content, style):
    expected, _ = run(run_settings(optimizer), content, style)
    actual, _ = run(run_settings(optimizer), content, style, network=tiny_network().cuda())
    assert actual.image.device.type == "cpu"
    assert torch.allclose(actual.image, expected.image, atol=1e-4)
