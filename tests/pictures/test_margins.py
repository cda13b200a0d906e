"""Uniform margins of style images are cut off, and paper stays."""

import pytest
import torch

from styletransfer.pictures.images import Picture
from styletransfer.pictures.margins import crop_margins


def painting(height=60, width=80):
    generator = torch.Generator().manual_seed(0)
    return 0.2 + 0.5 * torch.rand(1, 3, height, width, generator=generator)


def framed(inside, color, top, right, bottom, left):
    """Return `inside` (1, 3, H, W) with margins of one colour and these widths in pixels."""
    height, width = inside.shape[2:]
    color = torch.tensor(color).view(1, 3, 1, 1)
    made = color.repeat(1, 1, height + top + bottom, width + left + right)
    made[:, :, top : top + height, left : left + width] = inside
    return made


@pytest.mark.parametrize("color", [(1.0, 1.0, 1.0), (0.0, 0.0, 0.0), (0.9, 0.1, 0.3)])
@pytest.mark.parametrize("widths", [(5, 9, 6, 8), (1, 1, 1, 1), (0, 12, 0, 0)])
def test_margins_are_cut_off_and_told(color, widths, caplog):
    caplog.set_level("INFO")
    made = framed(painting(), color, *widths)
    noise = 0.01 * torch.rand(made.shape, generator=torch.Generator().manual_seed(1))
    cropped = crop_margins(Picture((made - noise).clamp(0, 1), name="mat.jpg"))
    assert cropped.size == (60, 80)
    assert torch.allclose(cropped.rgb, painting(), atol=0.011)
    sides = zip(("top", "right", "bottom", "left"), widths, strict=True)
    told = ", ".join(f"{width} at the {side}" for side, width in sides if width)
    assert caplog.messages == [f"mat.jpg: cut off uniform margins, in pixels: {told}"]


def test_a_mat_around_a_black_line_is_cut_off_with_the_line():
    lined = framed(painting(), (0.0, 0.0, 0.0), 1, 1, 1, 1)
    assert crop_margins(Picture(framed(lined, (1.0, 1.0, 1.0), 7, 7, 7, 7))).size == (60, 80)


def drawing():
    paper = torch.ones(1, 3, 80, 80)
    diagonal = torch.arange(16, 64)
    paper[..., diagonal, diagonal] = paper[..., diagonal, 79 - diagonal] = 0.1
    paper[..., 20:24, 30:50] = 0.1
    return paper


def plain():
    nearly = torch.full((1, 3, 80, 80), 0.4)
    nearly[..., 36:44, 36:44] = painting(8, 8)
    return nearly


def sky():
    down = torch.linspace(0.2, 1, 120).view(1, 1, -1, 1)
    return down.expand(1, 3, 120, 80).contiguous()


@pytest.mark.parametrize("made", [painting, drawing, plain, sky])
def test_what_has_no_margins_stays(made, caplog):
    caplog.set_level("INFO")
    picture = Picture(made())
    assert crop_margins(picture) is picture
    assert not caplog.messages


def test_a_picture_with_transparent_pixels_stays():
    made = framed(painting(), (1.0, 1.0, 1.0), 5, 5, 5, 5)
    alpha = torch.ones_like(made[:, :1])
    assert crop_margins(Picture(made, alpha)).size == (60, 80)
    alpha[..., 30:40, 30:40] = 0.5
    assert crop_margins(picture := Picture(made, alpha)) is picture
