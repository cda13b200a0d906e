"""Painted films, measured: E_warp and the style loss of frames."""

from dataclasses import replace

import pytest
import torch
from helpers import picture, run_settings, tiny_network

from styletransfer.errors import UserError
from styletransfer.films.flicker import Flicker, measure, style_loss_of, warping_error
from styletransfer.films.motion import Motion
from styletransfer.job.job import Job
from styletransfer.modes import get_loss_mode
from styletransfer.objective.criterion import Criterion
from styletransfer.objective.inputs import pair
from styletransfer.objective.whole import Objective


def still(image, other, share=1.0):
    """The motion of a camera that stands, relied on so far everywhere."""
    return Motion(torch.zeros_like(image[:, :2]), torch.full_like(image[:, :1], share))


def ramp(step, count=7):
    return [torch.full((1, 3, 8, 8), step * time).double() for time in range(count)]


@pytest.fixture
def stands(monkeypatch):
    monkeypatch.setattr("styletransfer.films.flicker.motion_between", still)


@pytest.mark.usefixtures("stands")
def test_flicker_and_style_of_each_film():
    """Over one frame and over five; of the input no style."""
    films = {"input": ramp(0.0), "painted": ramp(0.1)}
    measured = measure(films, lambda frame: float(frame.mean()))
    assert measured["input"] == Flicker(0.0, 0.0, None)
    painted = measured["painted"]
    expected = pytest.approx((0.1**2, 0.5**2, 0.3))
    assert (painted.short, painted.long, painted.style) == expected
    films = {"input": ramp(0.0, 5), "painted": ramp(0.1, 5)}
    assert measure(films)["painted"] == Flicker(pytest.approx(0.01), None, None)


def test_only_what_is_relied_on_and_does_not_move_along_counts():
    weights = torch.rand(1, 1, 16, 20, generator=torch.Generator().manual_seed(0)).double()
    a, b = picture(1), picture(2)
    flow = torch.zeros(1, 2, 16, 20)
    flow[:, 0] = 2
    moved = b[..., [*range(2, 20), 19, 19]]
    expected = (((a - moved) ** 2) * weights).sum().item() / 3 / weights.sum()
    assert warping_error(Motion(flow, weights), a, b) == pytest.approx(expected)
    for share in (0.0, 0.24):  # across a cut
        assert warping_error(still(a, None, share), a, b) is None


@pytest.mark.usefixtures("stands")
def test_films_that_do_not_fit_are_refused():
    frames = [picture(1), picture(2)]
    with pytest.raises(UserError, match="lengths"):
        measure({"input": frames, "painted": frames[:1]})
    with pytest.raises(UserError, match="sizes"):
        measure({"input": frames, "painted": [picture(1, 8, 8)] * 2})


def test_the_style_loss_is_the_objectives_without_content_and_total_variation(content, style):
    config = run_settings()
    config.objective.tv_weight = 0.1
    job = Job(config, tiny_network(), get_loss_mode("loss_attribute"), pair(content, style))
    whole = Objective(job.extractor, job.mode, Criterion.of(config.objective), job.pictures_at(20))
    losses = whole.evaluate(picture(3).requires_grad_()).as_floats()
    assert losses["total_variation"] > 0
    expected = sum(value for name, value in losses.items() if name.startswith("style/"))
    assert style_loss_of(job)(picture(3)) == pytest.approx(expected)
    config.objective.style_weight = 0.0
    assert style_loss_of(replace(job, config=config)) is None
