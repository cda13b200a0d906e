"""Painted films, measured."""

import pytest
import torch
from helpers import picture, run_settings, tiny_network

from styletransfer.films.flicker import Flicker, measure, report, style_loss_of
from styletransfer.films.motion import Motion
from styletransfer.job.job import Job
from styletransfer.modes import get_loss_mode
from styletransfer.objective.criterion import Criterion
from styletransfer.objective.inputs import pair
from styletransfer.objective.whole import Objective


def still(image, other):
    return Motion(torch.zeros_like(image[:, :2]), torch.ones_like(image[:, :1]))


def ramp(step, count=7):
    return [torch.full((1, 3, 8, 8), step * time) for time in range(count)]


def test_flicker_and_style_of_each_film():
    films = {"input": ramp(0.0), "painted": ramp(0.1)}
    found = measure(films, still, lambda frame: float(frame.mean()))
    assert found["input"] == Flicker(0.0, 0.0, None)
    assert found["painted"].short == pytest.approx(0.01)
    assert found["painted"].long == pytest.approx(0.25)
    assert found["painted"].style == pytest.approx(0.3)


def test_the_table_names_the_ratio_to_the_reference():
    films = {"input": Flicker(1e-4, 2e-4), "a": Flicker(4e-3, 8e-3, 0.5), "b": Flicker(1e-3, 4e-3)}
    lines = report(films, "a").splitlines()
    assert [cell.strip() for cell in lines[2].split("|")[1:-1]] == [
        "input",
        "1.00e-04",
        "2.00e-04",
        "-",
    ]
    assert "1.00e-03 (0.25)" in lines[4]
    assert "4.00e-03 (0.50)" in lines[4]
    assert "(" not in report(films)
    assert "nan" not in report({"input": Flicker(float("nan"), 0.0)})


def test_the_style_loss_is_the_objectives(content, style):
    config = run_settings()
    job = Job(config, tiny_network(), get_loss_mode("loss_attribute"), pair(content, style))
    whole = Objective(job.extractor, job.mode, Criterion.of(config.objective), job.pictures_at(20))
    losses = whole.evaluate(picture(3).requires_grad_()).as_floats()
    expected = sum(value for name, value in losses.items() if name.startswith("style/"))
    assert style_loss_of(job)(picture(3)) == pytest.approx(expected)


def test_without_a_style_weight_there_is_none(content, style):
    config = run_settings()
    config.objective.style_weight = 0.0
    job = Job(config, tiny_network(), get_loss_mode("loss_attribute"), pair(content, style))
    assert style_loss_of(job) is None
