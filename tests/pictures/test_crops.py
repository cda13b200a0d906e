"""Training pictures: crops of real ones among procedural ones."""

from pathlib import Path

import pytest
import torch

from styletransfer.errors import UserError
from styletransfer.pictures import images
from styletransfer.pictures.crops import KEPT, PHOTO_SIZE, Crops, Photos


def test_broken_pictures_are_skipped_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name, value in (("a.png", 0.25), ("d.png", 0.75)):
        images.write(tmp_path / name, torch.full((1, 3, 8, 8), value))
    (tmp_path / "b.png").write_text("no picture")
    (tmp_path / "c.png").write_text("neither")
    photos = Photos(tmp_path)
    seen = [float(photos[index].mean()) for index in (0, 1, 2, 3, 1, 2)]
    assert seen == pytest.approx([0.25, 0.75, 0.75, 0.75, 0.75, 0.75], abs=0.01)
    assert caplog.text.count("skipped") == 2
    assert "skipped 2 unreadable files so far" in caplog.text


def test_a_folder_may_be_larger_than_memory(tmp_path: Path) -> None:
    """Files are read when they are asked for; one that is gone by then is skipped."""
    for index in range(KEPT + 2):
        images.write(tmp_path / f"{index:03d}.png", torch.full((1, 3, 4, 4), index / 255))
    photos = Photos(tmp_path)
    seen = [round(float(photos[index].mean()) * 255) for index in range(len(photos))]
    assert seen == list(range(KEPT + 2))
    for path in tmp_path.iterdir():
        path.unlink()
    assert round(float(photos[KEPT + 1].mean()) * 255) == KEPT + 1
    assert round(float(photos[0].mean()) * 255) > 0


def test_a_folder_without_pictures_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no readable picture"):
        Photos(tmp_path)


def test_crops_come_from_photos_at_the_given_share() -> None:
    photo = torch.ones(3, 20, 30)
    photo[0] = 0.25
    generator = torch.Generator().manual_seed(0)
    crops = Crops([photo], 1.0, 16)(5, generator)
    assert crops.shape == (5, 3, 16, 16)
    torch.testing.assert_close(crops.mean((0, 2, 3)), torch.tensor([0.25, 1.0, 1.0]))


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_a_share_of_nothing_and_no_photos_give_procedural_pictures() -> None:
    photo = torch.full((3, 20, 30), 0.25)
    without = Crops([], 1.0, 16)(3, generator())
    assert without.std() > 0.01
    assert torch.equal(Crops([photo], 0.0, 16)(3, generator()), without)


def test_crops_are_parts_of_the_photo_as_they_stand_or_mirrored() -> None:
    """In a picture of rows and columns each crop's colours grow downwards, and to one side."""
    rows, columns = torch.meshgrid(
        torch.linspace(0, 1, 40), torch.linspace(0, 1, 60), indexing="ij"
    )
    crops = Crops([torch.stack([rows, columns, rows])], 1.0, 16)(20, generator())
    down, across = crops[:, 0].diff(dim=1), crops[:, 1].diff(dim=2)
    assert (down > 0).all()
    to_the_right = (across > 0).all((1, 2))
    to_the_left = (across < 0).all((1, 2))
    assert (to_the_right | to_the_left).all()
    assert to_the_right.any()
    assert to_the_left.any()
    sides = crops[:, 0].amax((1, 2)) - crops[:, 0].amin((1, 2))
    assert sides.min() < 0.6 < 0.8 < sides.max()  # close-ups and overviews


def test_a_photo_smaller_than_a_crop_is_enlarged() -> None:
    crop = Crops([torch.full((3, 5, 7), 0.5)], 1.0, 16)(1, generator())
    torch.testing.assert_close(crop, torch.full((1, 3, 16, 16), 0.5))


def test_large_photos_are_reduced(tmp_path: Path) -> None:
    images.write(tmp_path / "large.png", torch.rand(1, 3, 20, PHOTO_SIZE + 100))
    assert Photos(tmp_path)[0].shape == (3, 19, PHOTO_SIZE)
