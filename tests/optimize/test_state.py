"""A run can be stopped and resumed after every step, with bit-identical results."""

import copy
import functools
import io
import operator
from contextlib import suppress
from dataclasses import replace
from itertools import islice

import pytest
import torch
from helpers import job_with, layers, picture, run_settings, tiny_network

from styletransfer.errors import UserError
from styletransfer.losses import LOSS_MODES
from styletransfer.objective.inputs import pair
from styletransfer.objective.whole import Objective
from styletransfer.optimize.run import Run
from styletransfer.settings import OptimizerConfig
from styletransfer.system.checkpoint import refused

OPTIMIZERS = {
    "lbfgs": OptimizerConfig(history=3),
    "lbfgs in pixels": OptimizerConfig(preconditioner=0.0),
    "lbfgs averaged": OptimizerConfig(averaging=0.8),
    "adam": OptimizerConfig("adam", 0.02),
    "adam averaged": OptimizerConfig("adam", 0.02, averaging=0.8),
}


def job_of(optimizer, mode="autograd_function", **settings):
    defaults = {"size": 20, "steps": 6, "scales": 2, "init": "noise"}
    config = run_settings(OPTIMIZERS[optimizer], **defaults | settings)
    return job_with(config, tiny_network(), LOSS_MODES[mode], pair(picture(1), picture(2, 18, 14)))


def stored(state):
    """Return a state as it is after saving and loading."""
    torch.save(state, file := io.BytesIO())
    file.seek(0)
    return torch.load(file, weights_only=True)


def left(job, steps):
    """Return a run of the job after `steps` steps."""
    run = Run(job)
    assert len(list(islice(run, steps))) == steps
    return run


def resumed(job, state):
    """Return a run of the job that resumes from a saved and loaded state."""
    run = Run(job)
    run.load_state_dict(stored(state))
    return run


def leave_everywhere(job):
    """Resume a run from the state after every step, compare results, and return the result."""
    losses, run = [], Run(job)
    states = [copy.deepcopy(run.state_dict())]
    for iterate in run:
        losses.append(iterate.losses.as_floats())
        states.append(copy.deepcopy(run.state_dict()))
    expected = run.result()
    states.append(run.state_dict())
    for index, state in enumerate(states):
        done, again = min(index, len(losses)), resumed(job, state)
        assert again.at.steps == done
        assert [iterate.losses.as_floats() for iterate in again] == losses[done:]
        result = again.result()
        assert torch.equal(result.image, expected.image)
        assert (result.losses, result.steps) == (expected.losses, expected.steps)
    return expected


@pytest.mark.slow
def test_every_optimizer_and_every_mode():
    for optimizer, mode in (
        ("lbfgs", "autograd_function"),
        ("lbfgs in pixels", "loss_attribute"),
        ("lbfgs averaged", "fake_backward"),
        ("adam", "loss_attribute"),
        ("adam averaged", "autograd_function"),
    ):
        result = leave_everywhere(job_of(optimizer, mode))
        assert (result.steps, result.problem) == (6, None)
    leave_everywhere(job_of("lbfgs", tile="8", steps=3, scales=1))
    leave_everywhere(replace(job_of("lbfgs", steps=4), extractor=tiny_network().float()))


def test_what_was_matched_is_matched_again():
    """A resumed scale matches from the image with which the scale began."""
    network = tiny_network(((3, 4), (4, 5), (5, 5, 4, 5), (6, 5, 5, 5)))
    objective = layers(match_weight=1.0, content_weight=0.0)
    config = run_settings(OPTIMIZERS["lbfgs"], size=40, steps=6, scales=2, objective=objective)
    pictures = pair(picture(1, 32, 40), picture(2, 36, 30))
    job = job_with(config, network, LOSS_MODES["autograd_function"], pictures)
    painted = leave_everywhere(job).image
    plain = replace(job, criterion=replace(job.criterion, painted_share=0.0))
    assert not torch.equal(painted, Run(plain).complete().image)


def test_on_a_plateau():
    """A resumed scale also ends early on a plateau."""
    job = job_of("lbfgs", steps=26, scales=2)
    job = replace(job, optimizer=OptimizerConfig(plateau=0.99))
    expected = Run(job).complete()
    assert 11 <= expected.steps < 26
    result = resumed(job, left(job, 11).state_dict()).complete()
    assert torch.equal(result.image, expected.image)
    assert result.steps == expected.steps


@pytest.mark.parametrize("optimizer", ["lbfgs", "adam averaged"])
@pytest.mark.parametrize("evaluation", [1, 3, 4, 5])
def test_an_interrupted_evaluation_leaves_the_step_before(optimizer, evaluation, monkeypatch):
    """Each of the two scales has three steps and one evaluation of its result."""
    job = job_of(optimizer)
    expected, counted = Run(job).complete(), []
    evaluate = Objective.evaluate

    def interrupted(self, image):
        counted.append(image)
        if len(counted) == evaluation:
            image.grad = torch.full_like(image, 7.0)  # half a gradient
            raise KeyboardInterrupt
        return evaluate(self, image)

    monkeypatch.setattr(Objective, "evaluate", interrupted)
    run = Run(job)
    with pytest.raises(KeyboardInterrupt):
        run.complete()
    assert run.at.steps == evaluation - 1 - (evaluation - 1) // 4
    assert torch.equal(resumed(job, run.state_dict()).complete().image, expected.image)
    assert torch.equal(run.complete().image, expected.image)


WRONG = (None, "x", -1, 10**30, float("nan"), [1], {"a": 1}, torch.ones(1, 3, 5, 5), torch.ones(3))
# Other forms of a tensor: of a float one complex numbers, a sparse layout, no numbers, a gradient.
OTHER_FORMS = (
    lambda tensor: tensor.cfloat(),
    lambda tensor: tensor.to_sparse(),
    lambda tensor: tensor.to("meta"),
    lambda tensor: tensor.clone().requires_grad_(),
)


def parts(value, path=()):
    """Yield the path of each part of nested dicts and lists, () first."""
    yield path
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from parts(part, (*path, key))


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["lbfgs averaged", "adam"])
def test_a_state_of_another_form_is_refused_or_runs(optimizer):
    """Check states after a step and between two scales, each with a wrong value at each place."""
    job = job_of(optimizer)
    for steps in (2, 4):
        whole = stored(left(job, steps).state_dict())
        for path in parts(whole):
            part = functools.reduce(operator.getitem, path, whole)
            others = OTHER_FORMS if torch.is_tensor(part) and part.is_floating_point() else ()
            for wrong in (*WRONG, *(other(part) for other in others)):
                state = {"": copy.deepcopy(whole)}
                place, keys = state, ("", *path)
                for key in keys[:-1]:
                    place = place[key]
                place[keys[-1]] = wrong
                with suppress(UserError):
                    with refused("no state of this run"):
                        (run := Run(job)).load_state_dict(state[""])
                    next(iter(run), None)
                    assert run.result().image.shape == (1, 3, 16, 20), (path, wrong)
