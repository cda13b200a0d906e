"""Captured evaluations: a replay in the same memory makes the same pictures as Python does."""

import gc
import signal
import weakref
from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch
from helpers import job_with, layers, picture, press, run_settings, tiny_network
from recorded import recorded

from styletransfer.job.choices import Choices
from styletransfer.losses import LOSS_MODES
from styletransfer.objective import captured
from styletransfer.objective.captured import CapturedObjective, obstacle
from styletransfer.objective.criterion import Criterion
from styletransfer.objective.inputs import pair
from styletransfer.optimize import run
from styletransfer.optimize.run import Run
from styletransfer.settings import OptimizerConfig
from styletransfer.system.signals import stop_on_signals

MODES = ("autograd_function", "loss_attribute")


def job_of(mode="autograd_function", optimizer=None, **settings):
    """Return a job whose evaluations are captured."""
    settings = {"size": 20, "steps": 5, "scales": 1, "init": "noise"} | settings
    config = run_settings(optimizer or OptimizerConfig(history=3), **settings)
    pictures = pair(picture(1), picture(2, 18, 14))
    return replace(job_with(config, tiny_network(), LOSS_MODES[mode], pictures), captured=True)


@pytest.fixture
def on_record(monkeypatch):
    monkeypatch.setattr(run, "captured_on_cuda", recorded)


def told(work):
    """Return what was seen of a run after its end, and its state before the last scale ended."""
    iterates, states = [], []
    for iterate in work:
        iterates.append(iterate)
        states.append(work.state_dict())
    seen = [(iterate.image, iterate.losses.as_floats()) for iterate in iterates]
    return seen, states[-1]["descent"], work.result()


def same(one, other):
    """Assert that nested values are equal, their tensors bit by bit."""
    if torch.is_tensor(one):
        assert torch.equal(one, other)
    elif isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            same(one[key], other[key])
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for left, right in zip(one, other, strict=True):
            same(left, right)
    else:
        assert one == other


@pytest.mark.usefixtures("on_record")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("preconditioner", [0.0, 1.0])
def test_five_steps_are_the_same(mode, preconditioner):
    """All iterates are kept, and looked at when the run has ended."""
    job = job_of(mode, OptimizerConfig(history=3, preconditioner=preconditioner))
    found, wanted = told(Run(job)), told(Run(replace(job, captured=False)))
    same(found[:2], wanted[:2])
    same(vars(found[2]), vars(replace(wanted[2], captured=True)))
    assert len(found[1]["optimizer"]["order"]) == 3


@pytest.mark.usefixtures("on_record")
@pytest.mark.parametrize("optimizer", ["lbfgs", "adam"])
def test_scales_averages_and_resumed_runs_are_the_same(optimizer):
    rate = 1.0 if optimizer == "lbfgs" else 0.02
    job = job_of(optimizer=OptimizerConfig(optimizer, rate, averaging=0.8), scales=2, steps=8)
    plain = Run(replace(job, captured=False)).complete()
    work = Run(job)
    for _, _step in zip(range(6), work, strict=False):
        pass
    again = Run(job)
    again.load_state_dict(work.state_dict())
    same(vars(again.complete()), vars(replace(plain, captured=True)))


def test_gradients_are_added_and_losses_stay():
    class Double:
        def evaluate(self, image):
            (loss := (image**2).sum()).backward()
            return captured.Losses({"square": loss.detach()})

    objective = CapturedObjective(Double(), lambda work: recorded("cpu", work))
    images = [torch.full((1, 3, 2, 2), value).requires_grad_() for value in (1.0, 2.0)]
    losses = [objective.evaluate(image) for image in images]
    objective.evaluate(images[0])
    assert [one.as_floats()["square"] for one in losses] == [12, 48]
    assert [image.grad.unique().item() for image in images] == [4, 4]


@pytest.mark.usefixtures("on_record")
def test_a_steered_run_replays_its_new_losses():
    def steered(job, other):
        work = Run(job)
        for step in work:
            if step.step == 3:
                work.steer(other)
        return work.result()

    jobs = job_of(), job_of(objective=layers(tv_weight=1.0, content_weight=0.1))
    found = steered(*jobs)
    plain = steered(*(replace(job, captured=False) for job in jobs))
    same(vars(found), vars(replace(plain, captured=True)))
    assert "total_variation" in found.losses


def refused(device, work):
    raise RuntimeError("operation not permitted when stream is capturing\nmore of it")


def exhausted(device, work):
    work()
    raise torch.OutOfMemoryError("CUDA out of memory.")


@pytest.mark.parametrize(
    ("capture", "reason"),
    [(refused, "operation not permitted when stream is capturing"), (exhausted, "CUDA out of mem")],
)
def test_a_capture_that_fails_is_told_and_left_out(capture, reason, monkeypatch, caplog):
    monkeypatch.setattr(run, "captured_on_cuda", capture)
    job = job_of(steps=4, scales=2)
    found = Run(job).complete()
    same(vars(found), vars(Run(replace(job, captured=False)).complete()))
    assert not found.captured
    begin = f"captured=true has no effect: {reason}"
    assert [record.message.startswith(begin) for record in caplog.records] == [True, True]
    assert "more of it" not in caplog.text


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is here")
def test_without_a_gpu_the_picture_is_painted_all_the_same(caplog):
    job = job_of()
    same(vars(Run(job).complete()), vars(Run(replace(job, captured=False)).complete()))
    assert len(caplog.records) == 1


def test_out_of_memory_drops_the_graph_before_tiles_are_made(monkeypatch):
    """Only memory that nobody refers to can be freed, and no garbage collection is waited for."""
    graphs, alive, replays, objective_of = [], [], [], run.objective_of

    def short(device, work):
        replay, outputs = recorded(device, work)
        graphs.append(weakref.ref(outputs[0]))

        def replayed():
            replays.append(replay())
            if len(replays) == 3:
                raise torch.OutOfMemoryError("CUDA out of memory.")

        return replayed, outputs

    def watched(job, pictures, tile, graph):
        alive.append([graph() is not None for graph in graphs])
        return objective_of(job, pictures, tile)

    monkeypatch.setattr(run, "captured_on_cuda", short)
    monkeypatch.setattr(run, "objective_of", watched)
    gc.disable()
    try:
        result = Run(job_of(steps=5)).complete()
    finally:
        gc.enable()
    assert (result.steps, result.problem, alive) == (5, None, [[], [False]])


def test_a_picture_is_captured_if_one_of_its_scales_is(monkeypatch):
    """The first scale's capture fails, or that of the last one."""
    for is_first in (True, False):
        made = []

        def sometimes(device, work, made=made, is_first=is_first):
            made.append(work)
            return (refused if (len(made) == 1) is is_first else recorded)(device, work)

        monkeypatch.setattr(run, "captured_on_cuda", sometimes)
        assert (Run(job_of(scales=2)).complete().captured, len(made)) == (True, 2)


@pytest.mark.parametrize("is_watched", [True, False], ids=["watched", "of python"])
def test_a_signal_waits_for_the_end_of_a_capture(is_watched, monkeypatch):
    finished = []

    def pressed(device, work):
        work()
        press(signal.SIGINT)
        made = recorded(device, work)
        finished.append(gc.isenabled())
        return made

    monkeypatch.setattr(run, "captured_on_cuda", pressed)
    work = Run(job_of())
    with pytest.raises(KeyboardInterrupt), stop_on_signals() if is_watched else nullcontext():
        work.complete()
    assert (finished, gc.isenabled()) == ([False], True)
    monkeypatch.setattr(run, "captured_on_cuda", recorded)
    plain = Run(replace(job_of(), captured=False)).complete()
    same(vars(Run(job_of()).complete()), vars(replace(plain, captured=True)))


def test_what_cannot_be_captured_is_named(caplog):
    cuda, mode = torch.device("cuda"), LOSS_MODES["autograd_function"]
    assert obstacle(cuda, mode, Criterion.of(layers())) == ""
    assert obstacle(torch.device("cpu"), mode, Criterion.of(layers())) == "on cpu"
    wasserstein = Criterion.of(layers(style_loss="wasserstein"))
    assert obstacle(cuda, mode, wasserstein) == "with objective.style_loss=wasserstein"
    for name in LOSS_MODES.keys() - set(MODES):
        told = obstacle(cuda, LOSS_MODES[name], Criterion.of(layers()))
        assert told == f"with loss_mode={name}"
    assert not Choices.of(run_settings(captured=True, device="cpu")).captured
    assert "captured=true has no effect on cpu" in caplog.text


@pytest.mark.cuda
@pytest.mark.parametrize("mode", MODES)
def test_five_steps_on_a_gpu(mode):
    """A graph may choose other algorithms for convolutions, so gradients differ by rounding."""
    job = job_of(mode)
    job = replace(job, extractor=tiny_network().cuda())
    found, wanted = told(Run(job)), told(Run(replace(job, captured=False)))
    for (image, losses), (other, others) in zip(found[0], wanted[0], strict=True):
        torch.testing.assert_close(image, other, rtol=0, atol=1e-6)
        assert losses == pytest.approx(others, rel=1e-6)
