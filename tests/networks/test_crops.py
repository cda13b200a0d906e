"""Training pictures: crops of photographs."""

import pytest
import torch
from helpers import check_error

from styletransfer.networks.training.crops import KEPT, PHOTO_SIZE, Crops, Photos
from styletransfer.pictures import images


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


def test_hidden_files_are_no_photos(tmp_path, caplog):
    images.write(tmp_path / "a.png", torch.full((1, 3, 8, 8), 0.25))
    (tmp_path / "._a.png").write_bytes(b"\0\5\x16\7")
    photos = Photos(tmp_path)
    assert float(photos[0].mean()) == pytest.approx(0.25, abs=0.01)
    assert len(photos) == 1
    assert not caplog.records


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


def test_crops_come_from_all_photos_and_are_the_same_for_a_seed():
    photos = [torch.full((3, 10, 13), level) for level in (0.25, 0.75)]  # enlarged to the crops
    before = torch.get_rng_state()
    crops = Crops(photos, 16)(60, generator())
    assert crops.shape == (60, 3, 16, 16)
    levels = crops.mean((1, 2, 3))
    assert torch.equal((levels < 0.5) | ((levels - 0.75).abs() < 1e-5), torch.ones(60).bool())
    assert 10 < (levels < 0.5).sum() < 50
    assert torch.equal(Crops(photos, 16)(60, generator()), crops)
    assert torch.equal(torch.get_rng_state(), before)  # the global generator is unchanged


def test_crops_are_parts_of_the_photo_as_they_stand_or_mirrored():
    """In the photo red grows downwards and green to the right; in mirrored crops, to the left."""
    lines = torch.linspace(0, 1, 40), torch.linspace(0, 1, 60)
    rows, columns = torch.meshgrid(*lines, indexing="ij")
    crops = Crops([torch.stack([rows, columns, rows])], 16)(40, generator())
    down, across = crops[:, 0].diff(dim=1), crops[:, 1].diff(dim=2)
    assert (down > 0).all()
    to_the_right, to_the_left = (across > 0).all((1, 2)), (across < 0).all((1, 2))
    assert (to_the_right | to_the_left).all()
    assert 0 < to_the_right.sum() < 40
    sides = crops[:, 0].amax((1, 2)) - crops[:, 0].amin((1, 2))
    assert sides.min() < 0.6 < 0.8 < sides.max()  # close-ups and overviews
    assert (crops[:, 0].mean((1, 2)).max() - crops[:, 0].mean((1, 2)).min()) > 0.2  # all over
