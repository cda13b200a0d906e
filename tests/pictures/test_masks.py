"""Grey masks: soft edges kept, overlaps shared out, bad ones refused by name."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from styletransfer.pictures.masks import masks_in, read_mask, read_masks

from styletransfer.errors import UserError
from styletransfer.pictures import images


def saved(path, grey):
    """Write floats (H, W) in [0, 1] as a grey picture; return its path."""
    images.write(path, torch.as_tensor(grey, dtype=torch.float32).expand(1, 3, *grey.shape))
    return path


def ramp(height=10, width=16):
    return np.tile(np.linspace(0, 1, width, dtype=np.float32), (height, 1))


def test_soft_edges_are_kept(tmp_path):
    mask = read_mask(saved(tmp_path / "a.png", ramp()), "protect")
    assert mask.shape == (1, 1, 10, 16)
    assert (mask[0, 0] - torch.from_numpy(ramp())).abs().max() <= 0.5 / 255 + 1e-6


@pytest.mark.parametrize(
    "source",
    [
        ramp(),
        torch.from_numpy(ramp()),
        Image.fromarray(np.round(ramp() * 255).astype(np.uint8)),
        np.round(ramp() * 255).astype(np.uint8),
    ],
    ids=["floats", "tensor", "Pillow", "bytes"],
)
def test_masks_in_memory(source):
    mask = read_mask(source, "protect")
    assert (mask[0, 0] - torch.from_numpy(ramp())).abs().max() <= 0.5 / 255 + 1e-6


def test_a_boolean_mask():
    mask = read_mask(ramp() > 0.5, "protect")
    assert torch.equal(mask[0, 0] == 1.0, torch.from_numpy(ramp() > 0.5))


def test_opacity_is_part_of_a_mask():
    pixels = np.full((4, 6, 4), 255, np.uint8)
    pixels[:, 3:, 3] = 51
    mask = read_mask(pixels, "protect")
    assert mask[0, 0, 0].tolist() == pytest.approx([1.0] * 3 + [0.2] * 3)


def test_jpeg_of_a_grey_mask_is_grey(tmp_path):
    Image.fromarray(np.round(ramp(64, 64) * 255).astype(np.uint8)).convert("RGB").save(
        tmp_path / "a.jpg", quality=50
    )
    assert read_mask(tmp_path / "a.jpg", "protect").max() > 0.9


def test_an_empty_mask_is_refused_by_name(tmp_path):
    black = saved(tmp_path / "sky.png", np.zeros((4, 6)))
    with pytest.raises(UserError, match=r"sky\.png is an empty mask; paint white"):
        read_masks([saved(tmp_path / "a.png", ramp(4, 6)), black], "content_regions")
    with pytest.raises(UserError, match=r"^protect is an empty mask"):
        read_mask(np.zeros((4, 6)), "protect")


def test_a_colour_picture_is_no_mask():
    with pytest.raises(UserError, match=r"^protect is a colour picture; a mask is grey"):
        read_mask(np.array([[[255, 0, 0]] * 3] * 3, np.uint8), "protect")


def test_a_region_is_called_like_its_file_and_else_by_its_number(tmp_path):
    paths = [saved(tmp_path / f"{name}.png", ramp()) for name in ("sky", "house")]
    assert read_masks(paths, "regions").names == ("sky", "house")
    assert read_masks([paths[0], ramp()], "regions").names == ("sky", "2")


def test_masks_are_divided_by_their_sum_only_where_it_is_above_one():
    first, second = np.array([[1.0, 1.0, 0.25, 0.0]]), np.array([[0.0, 1.0, 0.5, 0.0]])
    regions = read_masks([first, second], "regions")
    assert regions.layers[:, 0, 0].tolist() == [[1.0, 0.5, 0.25, 0.0], [0.0, 0.5, 0.5, 0.0]]
    assert regions.soft
    assert regions.shares == [1.75 / 4, 1.0 / 4]
    assert regions.uncovered == pytest.approx(1.25 / 4)


def test_masks_of_several_sizes_are_refused(tmp_path):
    paths = [saved(tmp_path / "a.png", ramp(10, 16)), saved(tmp_path / "b.png", ramp(5, 8))]
    with pytest.raises(UserError, match="mask a has 16 x 10 pixels and b 8 x 5; masks of one"):
        read_masks(paths, "regions")


def test_masks_of_one_name_are_refused(tmp_path):
    (tmp_path / "other").mkdir()
    paths = [saved(tmp_path / "a.png", ramp()), saved(tmp_path / "other" / "a.png", ramp())]
    with pytest.raises(UserError, match="two masks are called a; rename one"):
        read_masks(paths, "regions")


def test_an_empty_list_is_refused():
    with pytest.raises(UserError, match=r"^regions lists no mask"):
        read_masks([], "regions")


def test_a_folder_is_read_in_the_order_of_names_without_what_is_no_picture(tmp_path):
    for name in ("b.png", "a.png"):
        saved(tmp_path / name, ramp())
    (tmp_path / "notes.txt").write_text("sky first")
    assert [Path(path).name for path in masks_in(tmp_path)] == ["a.png", "b.png"]


def test_a_folder_without_pictures_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"no picture in .*; put one grey mask per region there"):
        masks_in(tmp_path)
