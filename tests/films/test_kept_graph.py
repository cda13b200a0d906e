"""A film keeps the captured evaluation of a frame, and replays it for the next frames."""

from dataclasses import replace

import pytest
import torch
from films.test_flicker import ALL, move, moving
from helpers import composed, picture
from recorded import recorded

from styletransfer.films.flicker import FrameOptimizer
from styletransfer.films.motion import Motion
from styletransfer.job.prepare import prepare
from styletransfer.optimize import run
from styletransfer.optimize.run import Run

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("tiny_vgg", "gpu", "desk")]
SIZES = [(18, 24), (36, 48)]  # (height, width) of the two scales
FOLLOWING = [*SIZES, (36, 48)]  # the second frame has one more loss, so it is captured anew


@pytest.fixture
def captures(monkeypatch):
    """Return a list of the pictures' sizes of all captures; in the films nothing moves."""
    made = []

    def counted(device, work):
        replay, outputs = recorded(device, work)
        made.append(tuple(outputs[0].shape[2:]))
        return replay, outputs

    monkeypatch.setattr(run, "captured_on_cuda", counted)
    move(monkeypatch, resting)
    return made


def resting(image, other):
    """Return a fake motion: nothing moves, and each frame is reliable in places of its own."""
    return Motion(torch.zeros_like(image[:, :2]), 0.6 + 0.4 * image[:, :1])


def job_of(*words):
    """Return a job of the default look; each frame has calm places of its own."""
    tiny = ["features=vgg19", "features.weights=random", "precision=float32", "size=48", "scales=2"]
    more = ["steps=2", "device=cuda", "objective.calm_freedom=1", "objective.tv_weight=0.1", *words]
    job = prepare(composed("train", "content=content.png", "style=style.png", *tiny, *more))
    return replace(job, captured=True)


def frames(count):
    """Return frames (1, 3, 36, 48): one by one darker, the last one with a flat half."""
    made = [picture(number, 36, 48).float() / (1 + number) for number in range(count)]
    made[-1][..., :24] = 0.5
    return made


def film(painter, frames):
    """Paint `frames`, each from the one before; return the outcomes."""
    outcomes = []
    for frame in frames:
        outcomes.append(painter.paint(frame))
        painter.follow(frame, outcomes[-1].image)
    return outcomes


def same(found, wanted):
    for one, other in zip(found, wanted, strict=True):
        assert torch.equal(one.image, other.image)
        assert one.losses == other.losses


def test_frames_are_the_same(captures):
    job = job_of("loss_mode=loss_attribute")  # the other tests have autograd_function
    found = film(FrameOptimizer(job, 2, 10.0), frames(3))
    assert captures == FOLLOWING
    assert all("style/calm/relu1_1" in outcome.losses for outcome in found)
    assert all(outcome.captured for outcome in found)
    same(found, film(FrameOptimizer(replace(job, captured=False), 2, 10.0), frames(3)))


def test_frames_after_a_cut_are_captured_anew(captures, monkeypatch):
    """The frame after the cut is painted as the first one."""
    painter = FrameOptimizer(job_of(), 1, 10.0)
    film(painter, frames(2))
    move(monkeypatch, moving(0 * ALL[..., :1, :1], 0))
    film(painter, frames(1))
    assert captures == [*FOLLOWING, *SIZES]


def test_a_kept_graph_has_the_memory_of_the_next_frame(captures, monkeypatch):
    """If memory runs out, the run drops the graph, and paints the frame without tiles."""
    job, objective_of, drops = job_of(), run.objective_of, []

    def scarce(job, pictures, tile, graph):
        if graph is not None and len(captures) == 4:
            drops.append(graph)
            raise torch.OutOfMemoryError("CUDA out of memory.")
        assert tile is None
        return objective_of(job, pictures, tile, graph)

    painter = FrameOptimizer(job, 1, 10.0)
    found = film(painter, frames(2))
    with monkeypatch.context() as patched:
        patched.setattr(run, "objective_of", scarce)
        counted = "a plan would count the graph's memory as taken"
        patched.setattr(run, "plan_memory", lambda *_: pytest.fail(counted))
        found += film(painter, frames(1))
        assert captures == FOLLOWING
        captures.append("more memory is needed from here on")
        found += film(painter, frames(1))
    assert (captures[4:], len(drops)) == ([(36, 48)], 1)
    plain = FrameOptimizer(replace(job, captured=False), 1, 10.0)
    same(found, film(plain, [*frames(2), *frames(1), *frames(1)]))


def test_a_run_that_is_steered_after_its_end_does_not_replay_the_old_losses(captures):
    """A replay would leave the total variation's old weight, a number, as it was."""
    job, other = job_of(), job_of("objective.tv_weight=1", "steps=4")
    found = []
    for each, then in (
        (job, other),
        (replace(job, captured=False), replace(other, captured=False)),
    ):
        work = Run(each)
        work.complete()
        work.steer(then)
        found.append([work.complete()])
    same(*found)
