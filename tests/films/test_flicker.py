"""Frames of a film: each starts from the frame before; and measures of flicker and style."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from films.clips import pan, pan_flow
from helpers import job_with, picture, run_settings, tiny_network

from styletransfer.films import flicker
from styletransfer.films.motion import TAPS, Motion, reliability, softened
from styletransfer.losses import LOSS_MODES
from styletransfer.objective.inputs import pair
from styletransfer.optimize.run import Run
from styletransfer.pictures.images import blurred

ALL = torch.ones(1, 1, 16, 20)
SOME = torch.cat([torch.ones(1, 1, 16, 10), torch.full((1, 1, 16, 10), 0.25)], 3)


@pytest.fixture
def job(content, style):
    config = run_settings(steps=5, scales=2)
    return job_with(config, tiny_network(), LOSS_MODES["autograd_function"], pair(content, style))


def moving(reliability, across=2):
    """Return a fake motion_between: a flow of `across` pixels with the given reliability."""

    def motion(image, other):
        flow = torch.zeros_like(image[:, :2])
        flow[:, 0] = across
        return Motion(flow, reliability.to(image))

    return motion


def move(monkeypatch, motion):
    for module in ("styletransfer.films.flicker", "benchmarks.flicker"):
        monkeypatch.setattr(f"{module}.motion_between", motion)


def test_a_frame_starts_as_the_one_before_moved_along(job, monkeypatch):
    move(monkeypatch, moving(SOME))
    optimizer = flicker.FrameOptimizer(job, 3, 10.0)
    first = optimizer.job_of(picture(7))
    assert (first.scales, first.pictures.start, first.pictures.anchor) == (job.scales, None, None)
    assert torch.equal(first.pictures.content, picture(7))
    optimizer.before = picture(7), picture(8)
    following = optimizer.job_of(picture(9))
    assert following.scales == (replace(job.scales[-1], steps=3),)
    anchor = following.pictures.anchor
    for moved in (following.pictures.start, anchor.target):
        assert torch.allclose(moved[..., :-2], picture(8)[..., 2:], atol=1e-6)
    assert torch.equal(anchor.weights.float(), SOME)
    assert anchor.weight == 10.0
    assert optimizer.job_of(picture(10)).styles is following.styles is not None
    # The style features are kept too: the style image is not read again.
    blind = replace(following.pictures, styles=(torch.zeros(1, 3, 18, 14).double(),))
    known, anew = replace(following, pictures=blind), replace(following, styles=None)
    assert torch.equal(Run(known).complete().image, Run(anew).complete().image)


def test_after_a_cut_all_begins_anew(job, monkeypatch):
    move(monkeypatch, moving(0.1 * ALL))
    optimizer = flicker.FrameOptimizer(job, 3, 10.0)
    optimizer.before = picture(7), picture(8)
    assert optimizer.job_of(picture(9)).pictures.start is None
    steady = flicker.Steady(0.9)
    steady.mixed(picture(1), picture(1))
    assert torch.equal(steady.mixed(picture(2), picture(3)), picture(3))
    move(monkeypatch, moving(ALL, 0))  # the next frame is mixed with this one
    expected = flicker.with_contrast_of(0.9 * picture(3) + 0.1 * picture(4), picture(4))
    assert torch.allclose(steady.mixed(picture(2), picture(4)), expected, atol=1e-12)


def test_a_share_of_the_frame_before_moved_along_is_kept(monkeypatch):
    """Check the mixture, weighted by reliability, and that colours stay in [0, 1]."""
    move(monkeypatch, moving(SOME))
    steady = flicker.Steady(0.6)
    assert torch.equal(steady.mixed(picture(1), picture(2)), picture(2))
    moved = picture(2)[..., [*range(2, 20), 19, 19]]
    second = picture(4) + 0.6 * SOME * (moved - picture(4))
    second = flicker.with_contrast_of(second, picture(4))
    assert torch.allclose(steady.mixed(picture(3), picture(4)), second, atol=1e-12)
    moved = second[..., [*range(2, 20), 19, 19]]
    third = picture(6) + 0.6 * SOME * (moved - picture(6))
    third = flicker.with_contrast_of(third, picture(6))
    assert torch.allclose(steady.mixed(picture(5), picture(6)), third, atol=1e-12)
    move(monkeypatch, moving(ALL, 0.5))
    edges = flicker.Steady(0.9)
    edges.mixed(picture(1), picture(2).round())
    mixed = edges.mixed(picture(1), picture(2).round())
    assert 0 <= mixed.min() < mixed.max() <= 1
    move(monkeypatch, moving(ALL))
    untouched = flicker.Steady(0.0)
    untouched.mixed(picture(1), picture(2))
    assert torch.equal(untouched.mixed(picture(3), picture(4)), picture(4))


@pytest.mark.parametrize(("share", "left"), [(0.7, 1.0), (0.2, 0.4), (1.5, 1.5)])
def test_a_mixture_gets_the_contrast_of_the_frame_by_itself(share, left):
    """Check that lower contrast, relative to the blurred mixture, at most doubles."""
    frame = 0.3 + 0.4 * picture(7)
    faded = 0.5 + share * (frame - 0.5)
    blur = partial(blurred, deviation=flicker.NEAR, reach=TAPS)
    expected = blur(faded) + left * (frame - blur(frame))
    assert (flicker.with_contrast_of(faded, frame) - expected).abs().max() < 1e-3


def test_a_pan_stays_sharp(monkeypatch):
    motion = Motion(pan_flow(), softened(reliability(pan_flow(), -pan_flow())))
    move(monkeypatch, lambda image, other: motion)
    steady = flicker.Steady(0.8)
    for frame in map(pan, range(8)):
        mixed = steady.mixed(frame, frame)
    assert (mixed - pan(7))[..., 3:-3, 3:-3].abs().max() < 2e-3


@pytest.mark.parametrize(("share", "gain"), [(1.04, 1.04), (0.96, 0.96), (9, 1.1), (0, 1 / 1.1)])
def test_each_frame_gets_the_contrast_of_the_first(share, gain, job, monkeypatch):
    """Check a first frame of a share of the contrast that a later frame has as it is painted."""
    move(monkeypatch, moving(ALL, 0.5))
    optimizer = flicker.FrameOptimizer(job, 3, 10.0)
    optimizer.follow(picture(1), picture(2))
    plain = Run(optimizer.job_of(picture(3))).complete().image
    optimizer = flicker.FrameOptimizer(job, 3, 10.0)
    optimizer.follow(picture(0), 0.5 + share * (plain - 0.5))
    optimizer.follow(picture(1), picture(2))
    painted = optimizer.paint(picture(3)).image
    blur = blurred(plain, flicker.NEAR, TAPS)
    assert torch.allclose(painted, (blur + gain * (plain - blur)).clamp(0, 1), atol=1e-6)


def test_protected_pixels_get_no_contrast(job, monkeypatch):
    move(monkeypatch, moving(ALL, 0.5))
    protected = torch.cat([torch.ones(1, 1, 16, 8), torch.zeros(1, 1, 16, 12)], 3).double()
    job = replace(job, pictures=replace(job.pictures, protected=protected))
    optimizer = flicker.FrameOptimizer(job, 3, 10.0)
    optimizer.follow(picture(0), 9 * picture(0))
    optimizer.follow(picture(1), picture(2))
    plain = Run(optimizer.job_of(picture(3))).complete().image
    painted = optimizer.paint(picture(3)).image
    assert torch.equal(painted[..., :8], plain[..., :8])
    assert (painted - plain)[..., 8:].abs().mean() > 0.005
