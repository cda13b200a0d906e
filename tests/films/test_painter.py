"""Frames of a film: each goes on from the one before, where its motion can be relied on."""

from dataclasses import replace

import pytest
import torch
from helpers import picture, run_settings, tiny_network

from styletransfer.films.motion import Motion
from styletransfer.films.painter import FilmPainter
from styletransfer.job.job import Job
from styletransfer.modes import get_loss_mode
from styletransfer.objective.inputs import pair
from styletransfer.optimize.run import Run


@pytest.fixture
def job(content, style) -> Job:
    config = run_settings(steps=5, scales=2)
    mode = get_loss_mode("autograd_function")
    return Job(config, tiny_network(), mode, pair(content, style))


def moving(reliability):
    """Motion by two whole pixels to the right, believed as far as it is said."""

    def motion(image, other):
        flow = torch.zeros_like(image[:, :2])
        flow[:, 0] = 2
        return Motion(flow, reliability.to(image))

    return motion


ALL = torch.ones(1, 1, 16, 20)
HALF = torch.cat([torch.ones(1, 1, 16, 10), torch.zeros(1, 1, 16, 10)], 3)


def test_the_first_frame_is_a_picture_like_any_other(job):
    painter = FilmPainter(job, 3, 10.0, moving(ALL))
    first = painter.job_of(picture(7))
    assert (first.config, first.start, first.pictures.anchor) == (job.config, None, None)
    assert torch.equal(first.pictures.content, picture(7))
    assert painter.paint(picture(7)).steps == 5


def test_the_next_one_starts_as_the_one_before_moved_along(job):
    painter = FilmPainter(job, 3, 10.0, moving(HALF))
    painter.before = picture(7), picture(8)
    following = painter.job_of(picture(9))
    assert (following.config.steps, following.config.scales) == (3, 1)
    anchor = following.pictures.anchor
    for moved in (following.start, anchor.target):
        assert torch.allclose(moved[..., :-2], picture(8)[..., 2:], atol=1e-6)
    assert torch.equal(anchor.weights.float(), HALF)
    assert anchor.weight == 10.0


def test_styles_are_looked_at_once(job):
    painter = FilmPainter(job, 3, 10.0, moving(ALL))
    painter.before = picture(7), picture(8)
    first, second = painter.job_of(picture(9)), painter.job_of(picture(10))
    assert first.styles is second.styles is not None
    known, anew = Run(second).complete(), Run(replace(second, styles=None)).complete()
    assert torch.equal(known.image, anew.image)


def test_after_a_cut_all_begins_anew(job):
    painter = FilmPainter(job, 3, 10.0, moving(0.1 * ALL))
    painter.before = picture(7), picture(8)
    assert painter.job_of(picture(9)).start is None


def test_a_held_frame_stays_nearer_to_where_it_was(job):
    """Near it with a weight that outweighs all, less so with none."""
    found = []
    for weight in (0.0, 1e4):
        painter = FilmPainter(job, 5, weight, moving(ALL))
        painter.before = picture(7), picture(8)
        there = painter.job_of(picture(9)).start
        result = painter.paint(picture(9))
        found.append((result.image - there).square().mean().item())
        assert ("temporal" in result.losses) == (weight > 0)
    free, bound = found
    assert bound < 1e-3 < free / 3
