"""Motion between frames: optical flow, warping, and the reliability of the flow."""

import itertools
import sys
from importlib.util import find_spec

import pytest
import torch
from films.clips import grid, pan, pan_flow
from helpers import check_error, picture
from torch.nn.functional import interpolate

from styletransfer.films.motion import check_flow, motion_between, reliability, warp
from styletransfer.pictures import images
from styletransfer.resources import resource

needs_opencv = pytest.mark.skipif(not find_spec("cv2"), reason="needs the extra [video]")


def even(across, down):
    """Return a constant flow (1, 2, 16, 20) in pixels, of the size of `picture`."""
    return torch.tensor([across, down]).double().view(1, 2, 1, 1).expand(1, 2, 16, 20)


def test_warping_by_half_a_pixel_is_a_mean():
    image = picture(1)
    moved = warp(image, even(3, -2))
    assert torch.allclose(moved[..., 2:, :-3], image[..., :-2, 3:], atol=1e-12)
    assert torch.allclose(moved[..., 0, 0], image[..., 0, 3], atol=1e-12)  # repeats the border
    mean = (image[..., :-1] + image[..., 1:]) / 2
    assert torch.allclose(warp(image, even(0.5, 0))[..., :-1], mean, atol=1e-12)


def test_a_warped_frame_is_the_next_one_but_at_the_edge():
    flow = pan_flow()
    for mode, error in (("bilinear", 4e-3), ("bicubic", 2.5e-3)):
        assert (warp(pan(0), flow, mode) - pan(1))[..., 3:-3, 3:-3].abs().max() < error
    x, y = torch.stack(grid()) + flow[0]
    inside = (x >= 0) & (x <= 31) & (y >= 0) & (y <= 23)
    assert torch.equal(reliability(flow, -flow)[0, 0], inside.double())


def root(a, b, c):
    """Return the positive x with a x^2 + b x = c."""
    return (-b + (b * b + 4 * a * c) ** 0.5) / (2 * a)


@pytest.mark.parametrize("length", [1.0, 20.0])
def test_hidden_points_and_edges_have_the_papers_bounds(length):
    """Check |w + w'|^2 >= 0.01 (|w|^2 + |w'|^2) + 0.5 and |grad w|^2 > 0.01 |w|^2 + 0.002."""
    error = root(0.99, 0.02 * length, 0.02 * length**2 + 0.5)  # backward flow's shortfall
    slope = root(0.99, -0.02 * length, 0.01 * length**2 + 0.002)  # from row 0 to row 1
    for factor, relied in ((0.97, 1.0), (1.03, 0.0)):
        flow = torch.zeros(1, 2, 3, 100, dtype=torch.float64)
        flow[:, 0] = length
        assert reliability(flow, flow * (factor * error / length - 1))[0, 0, 1, 5] == relied
        flow[:, 0] += factor * slope * torch.arange(3.0)[:, None]
        assert reliability(flow, -flow)[0, 0, 1, 5] == relied


@needs_opencv
def test_opencv_finds_the_motion():
    frames = (interpolate(pan(time), (96, 128), mode="bicubic").clamp(0, 1) for time in (1, 0))
    motion = motion_between(*frames)
    expected = 4 * interpolate(pan_flow(), (96, 128), mode="bilinear", align_corners=False)
    error = (motion.flow - expected).square().sum(1).sqrt()[..., 12:-12, 12:-12]
    assert error.mean() < 0.5
    assert motion.reliability[..., 12:-12, 12:-12].mean() > 0.8


@needs_opencv
def test_two_photographs_are_a_cut():
    names = ("astronaut", "chelsea", "coffee", "rocket")
    photos = [images.read(resource("assets") / "content" / f"{name}.jpg").rgb for name in names]
    for image, other in itertools.pairwise(images.resize(photo, (60, 80)) for photo in photos):
        assert motion_between(image, other).is_cut
        assert not motion_between(image, torch.roll(image, 6, 3)).is_cut


@needs_opencv
def test_small_frames_and_a_missing_opencv_are_refused(monkeypatch):
    check_flow((8, 12))
    for height, width in ((8, 11), (8, 400)):
        check_error(f"{width} x {height} pixels are too small", check_flow, (height, width))
    monkeypatch.setitem(sys.modules, "cv2", None)
    check_error(r"styletransfer-torch\[video\]", check_flow, (24, 32))
