"""Training pictures: crops of photographs, and procedural pictures."""

import pytest
import torch
from helpers import check_error

from styletransfer.networks.procedural import picture
from styletransfer.pictures import images
from styletransfer.training.crops import KEPT, PHOTO_SIZE, Crops, Photos


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_broken_pictures_are_skipped_and_counted(tmp_path, caplog):
    for name, value in (("a.png", 0.25), ("d.png", 0.75)):
        images.write(tmp_path / name, torch.full((1, 3, 8, 8), value))
    (tmp_path / "b.png").write_text("no picture")
    (tmp_path / "c.png").write_text("neither")
    photos = Photos(tmp_path)
    seen = [float(photos[index].mean()) for index in (0, 1, 2, 3, 1, 2)]
    assert seen == pytest.approx([0.25, 0.75, 0.75, 0.75, 0.75, 0.75], abs=0.01)
    assert caplog.text.count("skipped") == 2
    assert "skipped 2 unreadable files so far" in caplog.text
    (tmp_path / "empty").mkdir()
    check_error("no readable picture", Photos, tmp_path / "empty")
    check_error(r"pictures=.*a\.png is not a folder", Photos, tmp_path / "a.png")


def test_a_folder_may_be_larger_than_memory(tmp_path):
    """A file is read when its photo is requested; the last KEPT photos stay in memory."""
    for index in range(KEPT + 2):
        images.write(tmp_path / f"{index:03d}.png", torch.full((1, 3, 4, 4), index / 255))
    photos = Photos(tmp_path)
    levels = [round(float(photos[index].mean()) * 255) for index in range(len(photos))]
    assert levels == list(range(KEPT + 2))
    for path in tmp_path.iterdir():
        path.unlink()
    assert round(float(photos[KEPT + 1].mean()) * 255) == KEPT + 1
    assert round(float(photos[0].mean()) * 255) > 0
    images.write(tmp_path / "large.png", torch.rand(1, 3, 20, PHOTO_SIZE + 100))
    assert Photos(tmp_path)[0].shape == (3, 19, PHOTO_SIZE)  # large photos are reduced


def test_crops_come_from_photos_at_the_given_share():
    photo = torch.full((3, 10, 13), 0.25)  # smaller than the crops, so enlarged
    crops = Crops([photo], 0.3, 16)(60, generator())
    assert crops.shape == (60, 3, 16, 16)
    flat = (crops - 0.25).abs().amax((1, 2, 3)) < 1e-5
    assert 0.1 < flat.float().mean() < 0.5
    without = Crops([], 1.0, 16)(3, generator())
    assert without.std() > 0.01
    assert torch.equal(Crops([photo], 0.0, 16)(3, generator()), without)


def test_crops_are_parts_of_the_photo_as_they_stand_or_mirrored():
    """In the photo red grows downwards and green to the right; in mirrored crops, to the left."""
    lines = torch.linspace(0, 1, 40), torch.linspace(0, 1, 60)
    rows, columns = torch.meshgrid(*lines, indexing="ij")
    crops = Crops([torch.stack([rows, columns, rows])], 1.0, 16)(40, generator())
    down, across = crops[:, 0].diff(dim=1), crops[:, 1].diff(dim=2)
    assert (down > 0).all()
    to_the_right, to_the_left = (across > 0).all((1, 2)), (across < 0).all((1, 2))
    assert (to_the_right | to_the_left).all()
    assert 0 < to_the_right.sum() < 40
    sides = crops[:, 0].amax((1, 2)) - crops[:, 0].amin((1, 2))
    assert sides.min() < 0.6 < 0.8 < sides.max()  # close-ups and overviews
    assert (crops[:, 0].mean((1, 2)).max() - crops[:, 0].mean((1, 2)).min()) > 0.2  # all over


def test_procedural_pictures_are_varied_and_the_same_for_a_seed():
    before, drawn, again = torch.get_rng_state(), generator(3), generator(3)
    pictures = torch.stack([picture(48, drawn) for _ in range(64)])
    assert all(torch.equal(picture(48, again), one) for one in pictures[:16])
    assert torch.equal(torch.get_rng_state(), before)  # the global generator is unchanged
    assert picture(33, generator(7)).shape == (3, 33, 33)
    flat = pictures.flatten(1)[:, ::7]
    assert torch.cdist(flat, flat, p=torch.inf).fill_diagonal_(1.0).min() > 0.01
    assert 0.0 <= pictures.min() <= pictures.max() <= 1.0  # and none is NaN
    assert pictures.mean((2, 3)).std(0).min() > 0.08
    assert pictures.std((2, 3)).mean(1).median() > 0.1
