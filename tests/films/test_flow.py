"""OpenCV's flow on clips whose motion is known."""

import builtins
import itertools

import pytest
import torch
from clips import pan, pan_flow, zoom, zoom_flow
from torch.nn.functional import interpolate

from styletransfer.errors import UserError
from styletransfer.films.flow import check_flow, motion_between
from styletransfer.pictures import images
from styletransfer.resources import resource


@pytest.fixture(scope="module", autouse=True)
def _opencv():
    pytest.importorskip("cv2", reason="needs OpenCV, of the extra [video]")


def large(frame):
    return interpolate(frame, (96, 128), mode="bicubic", align_corners=False).clamp(0, 1)


@pytest.mark.parametrize(("clip", "flow"), [(pan, pan_flow()), (zoom, zoom_flow())])
def test_it_finds_the_motion(clip, flow):
    found = motion_between(large(clip(1)), large(clip(0)))
    expected = 4 * interpolate(flow, (96, 128), mode="bilinear", align_corners=False)
    error = (found.flow - expected).square().sum(1).sqrt()[..., 12:-12, 12:-12]
    assert error.mean() < 0.5
    assert found.reliability[..., 12:-12, 12:-12].mean() > 0.8
    assert not found.is_cut


def test_two_photographs_are_a_cut():
    size = (60, 80)
    names = ("astronaut", "chelsea", "coffee", "rocket")
    photos = [images.read(resource("assets") / "content" / f"{name}.jpg").rgb for name in names]
    frames = [images.resize(photo, size) for photo in photos]
    for here, there in itertools.pairwise(frames):
        assert motion_between(here, there).is_cut
        assert not motion_between(here, torch.roll(here, 6, 3)).is_cut


def test_without_opencv_it_says_what_to_install(monkeypatch):
    known = builtins.__import__

    def without(name, *rest):
        if name == "cv2":
            raise ImportError(name)
        return known(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UserError, match=r"styletransfer\[video\]"):
        check_flow((24, 32))


@pytest.mark.parametrize("size", [(8, 11), (8, 400)])
def test_frames_that_are_too_small_are_refused(size):
    check_flow((8, 12))
    with pytest.raises(UserError, match=f"{size[1]} x {size[0]} pixels are too small"):
        check_flow(size)
