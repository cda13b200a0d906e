"""A run can be left and gone on with at every step, to the very bits."""

import copy
import io
from dataclasses import replace

import pytest
import torch
from helpers import Bowl, elastic, picture, run_settings, tiny_network, with_bowl

from styletransfer.config import OptimizerConfig
from styletransfer.errors import UserError
from styletransfer.job.job import Job
from styletransfer.modes import LOSS_MODES, get_loss_mode
from styletransfer.objective.inputs import pair
from styletransfer.optimize import run as run_module
from styletransfer.optimize.run import Run, complete_run
from styletransfer.system.signals import signals_held

OPTIMIZERS = {
    "lbfgs": OptimizerConfig(history=3),
    "lbfgs in pixels": OptimizerConfig(preconditioner=0.0),
    "lbfgs averaged": OptimizerConfig(averaging=0.8),
    "adam": OptimizerConfig("adam", 0.02),
    "adam averaged": OptimizerConfig("adam", 0.02, averaging=0.8),
}


def job_of(optimizer, mode="autograd_function", tile="auto", **settings):
    defaults = {"size": 20, "steps": 9, "scales": 3, "init": "noise", "tile": tile}
    config = run_settings(OPTIMIZERS[optimizer], **defaults | settings)
    return Job(config, tiny_network(), get_loss_mode(mode), pair(picture(1), picture(2, 18, 14)))


def stored(state):
    """What comes back from a file."""
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def assert_ends_equal(job, expected, losses, state, done):
    again = Run(job)
    again.load_state_dict(state)
    assert again.steps == done
    rest = [iterate.losses.as_floats() for iterate in again]
    result = again.result()
    assert rest == losses[done:]
    assert torch.equal(result.image, expected.image)
    assert (result.losses, result.steps) == (expected.losses, expected.steps)


def leave_everywhere(job):
    """Leave a run at every step, go on from there, and compare."""
    losses, states = [], []
    run = Run(job)
    states.append(stored(run.state_dict()))
    for iterate in run:
        losses.append(iterate.losses.as_floats())
        states.append(stored(run.state_dict()))
    expected = run.result()
    states.append(stored(run.state_dict()))
    for done, state in enumerate(states):
        assert_ends_equal(job, expected, losses, state, min(done, len(losses)))
    return expected


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("mode", LOSS_MODES)
def test_every_optimizer_in_every_mode(optimizer, mode):
    result = leave_everywhere(job_of(optimizer, mode))
    assert (result.steps, result.problem) == (9, None)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_in_tiles(optimizer):
    leave_everywhere(job_of(optimizer, tile="8"))


def test_in_float32():
    job = job_of("lbfgs")
    leave_everywhere(replace(job, extractor=tiny_network().float()))


def test_on_a_plateau():
    """A scale that ends early ends early again."""
    optimizer = OptimizerConfig(plateau=0.99)
    job = job_of("lbfgs", steps=26, scales=2)
    job = replace(job, config=replace(job.config, optimizer=optimizer))
    assert 11 <= leave_everywhere(job).steps < 26


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("broken", [[4], [1, 2], range(5, 16), range(3, 100)])
def test_after_a_loss_that_was_not_finite(optimizer, broken, monkeypatch):
    """Evaluations are counted from the beginning, so the bowl has to be told what was done."""
    job = job_of(optimizer, steps=24, scales=1)
    target = picture(5)

    def run_from(done):
        with_bowl(monkeypatch, Bowl(target, [number - done for number in broken]))
        return Run(job)

    run = run_from(0)
    states = [copy.deepcopy(run.state_dict())]
    states += [copy.deepcopy(run.state_dict()) for _ in run]
    expected = run.result()
    for done, state in enumerate(states):
        again = run_from(done)
        again.load_state_dict(state)
        result = again.complete()
        assert torch.equal(result.image, expected.image)
        assert (result.steps, result.problem) == (expected.steps, expected.problem)


def test_a_state_in_memory_is_kept_by_a_deep_copy(monkeypatch):
    job = job_of("lbfgs")
    run = Run(job)
    iterates = iter(run)
    for _ in range(5):
        next(iterates)
    kept = copy.deepcopy(run.state_dict())
    expected = run.complete()
    again = Run(job)
    again.load_state_dict(kept)
    assert torch.equal(again.complete().image, expected.image)


def test_leaving_the_iteration_pauses_a_run():
    job, expected = job_of("adam"), complete_run(job_of("adam"))
    run = Run(job)
    for iterate in run:
        if iterate.step in (2, 5):
            break
    assert run.steps == 2
    iterates = iter(run)
    assert next(iterates).step == 3
    iterates.close()
    assert run.result().steps == 3
    assert [iterate.step for iterate in run] == [4, 5, 6, 7, 8, 9]
    assert torch.equal(run.result().image, expected.image)


def test_there_is_a_result_at_any_time():
    run = Run(job_of("lbfgs"))
    assert torch.equal(run.result().image, Run(run.job).result().image)
    for _ in run:
        result = run.result()
        assert result.image.shape == (1, 3, 16, 20)
        assert result.losses == {}
        assert not result.interrupted
    assert run.result().losses["total"] > 0


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("evaluation", range(1, 13))
def test_an_interrupted_evaluation_leaves_the_last_complete_step(
    optimizer, evaluation, monkeypatch
):
    """Wherever the signal comes, targets of the next scale included; three scales of 3 + 1."""
    job = job_of(optimizer)
    expected, counted = complete_run(job), []
    real = run_module.make_objective

    class Interrupted:
        halved, tile = False, None

        def __init__(self, objective):
            self.objective = objective

        def evaluate(self, image):
            counted.append(image)
            if len(counted) == evaluation:
                image.grad = torch.full_like(image, 7.0)  # half a gradient
                raise KeyboardInterrupt
            return self.objective.evaluate(image)

    monkeypatch.setattr(run_module, "make_objective", lambda *args: Interrupted(real(*args)))
    run = Run(job)
    with signals_held():
        result = run.complete()
    assert result.interrupted
    assert result.steps == evaluation - 1 - (evaluation - 1) // 4
    state = stored(run.state_dict())
    monkeypatch.setattr(run_module, "make_objective", real)
    again = Run(job)
    again.load_state_dict(state)
    assert torch.equal(again.complete().image, expected.image)
    assert torch.equal(run.complete().image, expected.image)


def test_a_smaller_tile_goes_on_smaller(monkeypatch):
    """The layout of a scale is not chosen anew: it depends on the memory that is free."""
    real, tiles = run_module.make_objective, []

    def noting(*args):
        objective = real(*args)
        tiles.append(args[-3])
        if len(tiles) == 1:
            objective.tile, objective.halved = 4, True
        return objective

    monkeypatch.setattr(run_module, "make_objective", noting)
    job = job_of("lbfgs", size=32, scales=2)
    run = Run(job)
    next(iter(run))
    state = stored(run.state_dict())
    run.complete()
    assert tiles == [None, 4]  # the next scale takes what the first has found out
    again = Run(job)
    again.load_state_dict(state)
    again.complete()
    assert tiles == [None, 4, 4, 4]


def test_a_shorter_history_stays_short(monkeypatch, caplog):
    free = iter([0.0, 1e12, 1e12])
    job = job_of("lbfgs", size=32, scales=1)
    monkeypatch.setattr(run_module, "free_bytes", lambda device: next(free))
    run = Run(job)
    next(iter(run))
    state = stored(run.state_dict())
    expected = run.complete()
    again = Run(job)
    again.load_state_dict(state)
    assert torch.equal(again.complete().image, expected.image)
    assert caplog.text.count("memory allows an L-BFGS history of 1") == 1


@pytest.mark.parametrize("settings", [{"size": 24}, {"scales": 1}])
def test_the_state_of_another_job_is_refused(settings):
    run = Run(job_of("lbfgs"))
    next(iter(run))
    with pytest.raises(UserError, match="belongs to another job"):
        Run(job_of("lbfgs", **settings)).load_state_dict(run.state_dict())


def test_what_is_evaluated_has_no_gradient_yet(monkeypatch):
    """Objectives add to it."""
    grads = []

    class Watching(Bowl):
        def evaluate(self, image):
            grads.append(image.grad)
            return super().evaluate(image)

    bowl = Watching(picture(5))
    monkeypatch.setattr(run_module, "make_objective", lambda *args: elastic(bowl))
    for optimizer in OPTIMIZERS:
        complete_run(job_of(optimizer, scales=1))
    assert len(grads) == 10 * len(OPTIMIZERS)
    assert all(grad is None for grad in grads)
