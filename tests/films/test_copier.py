"""A film in one's own hand: each pixel shows a place of a painted frame, and keeps it."""

import logging
from dataclasses import replace

import pytest
import torch
from films.clips import grid, scene
from helpers import composed, needs, picture, press
from torch.nn.functional import interpolate

from styletransfer.copying import paired
from styletransfer.copying.copied import pixels
from styletransfer.films.copier import FrameCopier, moved
from styletransfer.films.motion import Motion, warp
from styletransfer.job.prepare import prepare
from styletransfer.objective.inputs import Correspondence
from styletransfer.pictures import images
from styletransfer.pictures.convert import to_image
from styletransfer.system.signals import Stopped, signals_held, stop_on_signals

Y, X = torch.meshgrid(torch.arange(12.0), torch.arange(16.0), indexing="ij")


def filmed(time):
    """Return the frame (1, 3, 40, 48) at `time`, in frames, of a camera that moves right."""
    x, y = grid(40, 48)
    return scene(x + 1.5 * time, y).float()


CLIP = [filmed(time) for time in range(4)]


def painting(photograph):
    """Return a soft painting of a frame, in other colours, with fine grain."""
    grain = interpolate(picture(5, 20, 24).float(), (40, 48), mode="bicubic")
    return (0.8 * photograph.flip(1) + 0.2 * grain).clamp(0, 1)


def other(time):
    """Return a frame of another scene at `time`."""
    return 1 - filmed(time).flip(2)


def job_of(pairs):
    """Return the job of a film, from pairs of a photograph and its painting."""
    words = ["content=0.png", "size=48", "precision=float32"]
    for number, pair in enumerate(pairs):
        for key, image in zip(("source", "painted"), pair, strict=True):
            images.write(f"{key}{number}.png", image)
    images.write("0.png", pairs[0][0])
    for key, name in (("style_source", "source"), ("style", "painted")):
        words.append(f"{key}=[{','.join(f'{name}{number}.png' for number in range(len(pairs)))}]")
    return prepare(composed("train", *words))


@pytest.fixture
def job(here, tiny_vgg):
    return job_of([(filmed(0), painting(filmed(0)))])


def painted_film(job, folder, film, resumed=(), count=None):
    """Return the first `count` painted frames; the frames `resumed` were painted before."""
    needs("video", "cv2")
    copier, made = FrameCopier(job, folder, lambda: film), list(resumed)
    for number, frame in enumerate(film[:count]):
        if number == len(made):
            made.append(copier.paint(frame).image)
        copier.follow(frame, made[number])
    return made


def levels(pairs, film, folder):
    """Return the mean level of each painted frame, away from the border, in a film of `pairs`."""
    job = job_of([(key, torch.full_like(key, level)) for key, level in pairs])
    return [float(one[..., 8:-8].mean()) for one in painted_film(job, folder, film)]


def moving(columns, across):
    """Return what a frame shows after a motion by `across` pixels; the one before: `columns`."""
    flow = torch.zeros(1, 2, 12, 16)
    flow[:, 0] = across
    shown = Correspondence(torch.stack([0 * Y, Y, columns]), [(12, 16)])
    return moved(shown, Motion(flow, torch.ones_like(flow)))


def test_fractions_of_a_pixel_add_up():
    once = moving(X, 0.25)
    twice = moving(once.places[2], 0.25)
    torch.testing.assert_close(twice.places[2][:, :-1], (X + 0.5)[:, :-1])
    assert twice.places[1].equal(Y)


def test_a_place_between_pixels_has_the_colour_between():
    ramp = (X / 20).expand(1, 3, 12, 16)
    made = pixels(moving(X, 0.5), (ramp,))
    torch.testing.assert_close(made[..., 3:-3], (ramp + 0.5 / 20)[..., 3:-3])


def test_no_pixel_shows_a_place_between_two_pieces():
    shown = moving(torch.where(X < 8, X, X - 8), 0.5).places[2][:, :-1]
    pieces = torch.stack([X + 0.5, X - 7.5])[..., :-1]
    assert (shown - pieces).abs().amin(0).max() < 1e-5


def test_each_pixel_shows_its_own_painting():
    found = Correspondence(torch.stack([X >= 8, Y, X]), [(12, 16)] * 2)
    two = (torch.zeros(1, 3, 12, 16), torch.ones(1, 3, 12, 16))
    made = pixels(found, two)[0, 0]
    torch.testing.assert_close(made, (X >= 8).float())


@pytest.mark.parametrize("largest", [512, 32])
def test_a_painted_frame_comes_back_wherever_it_stands(job, tmp_path, monkeypatch, largest):
    monkeypatch.setattr(paired, "CONTENT_SIDE", largest)
    made = painted_film(job, tmp_path, [filmed(0), filmed(1), filmed(0)])
    assert (made[2] - job.pictures.styles[0]).abs().mean() < 2 / 255


def test_strokes_stay_on_what_they_are_on(job, tmp_path):
    made, flow = painted_film(job, tmp_path, CLIP), torch.zeros(1, 2, 40, 48)
    flow[:, 0] = 4.5
    followed = warp(painting(filmed(0)), flow, "bicubic")
    assert (made[3] - followed)[..., 4:-4, 4:-8].abs().mean() < 2 / 255


def printed(photograph):
    """Return a print of a frame in lines, which are broader where the frame is darker."""
    lines = torch.cos(2 * torch.pi * 0.23 * (torch.arange(40)[:, None] + torch.arange(48)))
    return (
        ((photograph.mean(1, keepdim=True) - lines / 2) * 4 + 0.5).clamp(0, 1).expand(1, 3, 40, 48)
    )


def test_printed_lines_stay_on_the_page_while_things_move(here, tiny_vgg, tmp_path):
    made = painted_film(job_of([(filmed(0), printed(filmed(0)))]), tmp_path, CLIP)
    truth = printed(filmed(3))
    assert (made[3] - truth).square().mean() < 0.3 * (truth.mean() - truth).square().mean()


@pytest.mark.slow
def test_frames_before_the_painted_one_follow_it_too(here, tiny_vgg, tmp_path, capfd):
    job, flow = job_of([(filmed(3), painting(filmed(3)))]), torch.zeros(1, 2, 40, 48)
    flow[:, 0] = -4.5
    followed = warp(painting(filmed(3)), flow, "bicubic")
    made = painted_film(job, tmp_path, CLIP)
    assert (made[0] - followed)[..., 4:-4, 8:-4].abs().mean() < 2 / 255
    assert "following back 4/4 frames" in capfd.readouterr().err
    # Only the positions of the last frame stay.
    assert [path.name for path in tmp_path.glob("*.safetensors")] == ["000003.safetensors"]


@pytest.mark.parametrize("change", ["jpeg", "half", "other colours"])
def test_an_exported_photograph_is_known_as_its_frame(here, tiny_vgg, caplog, change):
    grain = picture(3, 40, 64).float()
    film = [0.9 * filmed(time) + 0.1 * grain[..., 2 * time : 2 * time + 48] for time in range(4)]
    photograph = film[2]
    if change == "jpeg":
        to_image(photograph).save("low.jpg", quality=30)
        photograph = images.read("low.jpg").rgb
    elif change == "half":
        photograph = images.resize(images.resize(photograph, (20, 24)), (40, 48))
    else:
        photograph = photograph * torch.tensor([0.95, 1.0, 1.05]).view(3, 1, 1)
    assert (photograph - film[2]).abs().mean() > 3 / 255
    job = job_of([(photograph, painting(film[2])), (picture(1, 40, 48), picture(2, 40, 48))])
    with caplog.at_level(logging.INFO):
        copier = FrameCopier(job, here, lambda: film)
    assert copier.keys == {2: 0}
    assert "painted0.png: its photograph is frame 2 of the film" in caplog.text
    assert "painted1.png: its photograph is no frame of the film" in caplog.text


@pytest.mark.slow
def test_an_exported_photograph_gives_its_painting_back(here, tiny_vgg):
    to_image(filmed(1)).save("low.jpg", quality=10)
    [_, made] = painted_film(
        job_of([(images.read("low.jpg").rgb, painting(filmed(1)))]), here, CLIP[:2]
    )
    torch.testing.assert_close(made, painting(filmed(1)), atol=2 / 255, rtol=0)


def test_what_a_photograph_alone_shows_is_kept(here, tiny_vgg, monkeypatch):
    monkeypatch.setattr("styletransfer.films.copier.WIDE", 1.0)
    photograph, part = filmed(1), (..., slice(12, 18), slice(16, 22))
    photograph[part] += torch.where(photograph[part] < 0.5, 0.3, -0.3)
    copier = FrameCopier(job_of([(photograph, painting(photograph))]), here, lambda: CLIP)
    (source,) = copier.pictures.sources
    assert copier.keys == {1: 0}
    torch.testing.assert_close(source[part], photograph[part], atol=0.01, rtol=0)


@pytest.mark.slow
def test_a_frame_mixes_the_keys_around_it_by_time(here, tiny_vgg, tmp_path):
    pairs = [(filmed(0), 0.2), (filmed(4), 1.0), (filmed(6), 0.0)]
    made = levels(pairs, list(map(filmed, range(8))), tmp_path)
    assert made == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0, 0.5, 0.0, 0.0], abs=0.02)


@pytest.mark.slow
def test_only_the_keys_around_a_frame_are_used(here, tiny_vgg, tmp_path):
    film = [filmed(0), other(0), filmed(4), other(1)]  # the last is most like the second
    made = levels([(film[0], 0.4), (film[2], 1.0), (film[3], 0.0)], film, tmp_path)
    assert made[1] > 0.39


@pytest.mark.slow
def test_a_key_of_another_scene_is_not_mixed_in(here, tiny_vgg, tmp_path):
    film = [filmed(0), filmed(1), other(2), other(3), other(4)]
    made = levels([(filmed(0), 0.0), (other(3), 1.0)], film, tmp_path)
    assert made == pytest.approx([0, 0, 1, 1, 1], abs=0.02)


@pytest.mark.slow
def test_a_film_goes_on_from_its_last_frame_alone(here, tiny_vgg, tmp_path):
    job = job_of([(filmed(time), painting(filmed(time))) for time in (0, 3)])
    whole = painted_film(job, tmp_path / "whole", CLIP)
    painted_film(job, tmp_path / "part", CLIP, count=2)
    again = painted_film(job, tmp_path / "part", CLIP, whole[:2])
    assert all(map(torch.equal, again, whole))


@pytest.mark.slow
def test_the_only_key_may_come_late_and_the_folder_is_made(here, tiny_vgg, tmp_path):
    job, folder = job_of([(filmed(2), painting(filmed(2)))]), tmp_path / "new" / "frames"
    made = painted_film(job, folder, CLIP[:3])
    torch.testing.assert_close(made[2], painting(filmed(2)), atol=2 / 255, rtol=0)
    assert [path.name for path in folder.iterdir()] == ["000002.safetensors"]


def test_a_signal_stops_a_film_before_its_next_frame(job, tmp_path, signals):
    copier = FrameCopier(job, tmp_path, lambda: CLIP)
    with stop_on_signals(), signals_held():
        copier.paint(CLIP[0])
        press()
        with pytest.raises(Stopped):
            copier.paint(CLIP[1])


def test_protected_pixels_keep_the_frame(job, tmp_path):
    left = (torch.arange(48) < 24).float().expand(1, 1, 40, 48)
    pictures = replace(job.pictures, protected=left)
    [made] = painted_film(replace(job, pictures=pictures), tmp_path, CLIP[:1])
    torch.testing.assert_close(made[..., :24], filmed(0)[..., :24])
