"""A film in one's own hand: each pixel shows a place of a painted frame, and keeps it."""

from dataclasses import replace

import pytest
import torch
from films.clips import grid, scene
from helpers import composed, picture
from torch.nn.functional import interpolate

from styletransfer.films.copier import FrameCopier, copied_smoothly, moved
from styletransfer.films.motion import Motion, warp
from styletransfer.job.prepare import prepare
from styletransfer.objective.inputs import Correspondence
from styletransfer.pictures import images

Y, X = torch.meshgrid(torch.arange(12.0), torch.arange(16.0), indexing="ij")
ONE = torch.zeros(12, 16, dtype=torch.long)


def filmed(time):
    """Return the frame (1, 3, 40, 48) at `time`, in frames, of a camera that moves right."""
    x, y = grid(40, 48)
    return scene(x + 1.5 * time, y).float()


def painting(photograph):
    """Return a soft painting of a frame, in other colours, with fine grain."""
    grain = interpolate(picture(5, 20, 24).float(), (40, 48), mode="bicubic")
    return (0.8 * photograph.flip(1) + 0.2 * grain).clamp(0, 1)


@pytest.fixture
def job(here, tiny_vgg):
    images.write("photo.png", filmed(0))
    images.write("painted.png", painting(filmed(0)))
    words = ["content=photo.png", "style=painted.png", "style_source=photo.png", "size=48"]
    return prepare(composed("train", *words, "precision=float32"))


def painted_film(job, folder, count=4):
    """Return the painted frames of a film."""
    copier, made = FrameCopier(job, folder), []
    for time in range(count):
        made.append(copier.paint(filmed(time)).image)
        copier.follow(filmed(time), made[-1])
    return made


def moving(columns, across):
    """Return what a frame shows after a motion by `across` pixels; the one before: `columns`."""
    flow = torch.zeros(1, 2, 12, 16)
    flow[:, 0] = across
    return moved(Correspondence(ONE, Y, columns, [(12, 16)]), Motion(flow, torch.ones_like(flow)))


def test_fractions_of_a_pixel_add_up():
    once = moving(X, 0.25)
    twice = moving(once.columns, 0.25)
    torch.testing.assert_close(twice.columns[:, :-1], (X + 0.5)[:, :-1])
    assert twice.rows.equal(Y)


def test_a_place_between_pixels_has_the_colour_between():
    ramp = (X / 20).expand(1, 3, 12, 16)
    made = copied_smoothly(moving(X, 0.5), (ramp,), (12, 16))
    torch.testing.assert_close(made[..., 3:-3], (ramp + 0.5 / 20)[..., 3:-3])


def test_no_pixel_shows_a_place_between_two_pieces():
    shown = moving(torch.where(X < 8, X, X - 8), 0.5).columns[:, :-1]
    pieces = torch.stack([X + 0.5, X - 7.5])[..., :-1]
    assert (shown - pieces).abs().amin(0).max() < 1e-5


def test_each_pixel_shows_its_own_painting():
    found = Correspondence((X >= 8).long(), Y, X, [(12, 16)] * 2)
    two = (torch.zeros(1, 3, 12, 16), torch.ones(1, 3, 12, 16))
    made = copied_smoothly(found, two, (12, 16))[0, 0]
    torch.testing.assert_close(made, (X >= 8).float())


def test_a_painted_frame_comes_back_wherever_it_stands(job, tmp_path):
    copier = FrameCopier(job, tmp_path)
    copier.before = None
    for frame in (filmed(0), filmed(1), filmed(0)):
        made = copier.paint(frame).image
        copier.follow(frame, made)
    assert (made - job.pictures.styles[0]).abs().mean() < 2 / 255


def test_strokes_stay_on_what_they_are_on(job, tmp_path):
    made, flow = painted_film(job, tmp_path), torch.zeros(1, 2, 40, 48)
    flow[:, 0] = 4.5
    followed = warp(painting(filmed(0)), flow, "bicubic")
    assert (made[3] - followed)[..., 4:-4, 4:-8].abs().mean() < 2 / 255


def test_a_film_goes_on_from_its_last_frame_alone(job, tmp_path):
    whole = painted_film(job, tmp_path / "whole")
    painted_film(job, tmp_path / "part", 2)
    copier = FrameCopier(job, tmp_path / "part")
    for time in (0, 1):
        copier.follow(filmed(time), whole[time])
    assert copier.paint(filmed(2)).image.equal(whole[2])


def test_protected_pixels_keep_the_frame(job, tmp_path):
    left = (torch.arange(48) < 24).float().expand(1, 1, 40, 48)
    pictures = replace(job.pictures, protected=left)
    made = FrameCopier(replace(job, pictures=pictures), tmp_path).paint(filmed(0)).image
    torch.testing.assert_close(made[..., :24], filmed(0)[..., :24])
