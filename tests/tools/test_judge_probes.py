"""The probes: each sees its own damage, in the right direction, and hardly any other."""

from collections.abc import Callable
from statistics import pstdev

import pytest
import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, pad

from styletransfer.commands.judge.probes import probe
from styletransfer.pictures import procedural

SIZE = 128
# What counts as hardly: a sixth, and for lightness a fiftieth of its range.
HARDLY = {"rel": 1 / 6, "abs": 0.02}


@pytest.fixture(params=[0, 4])
def picture(request: pytest.FixtureRequest) -> Tensor:
    """Strokes and shapes, within [0.2, 0.8] so that no damage leaves the range."""
    drawn = procedural.picture(SIZE, torch.Generator().manual_seed(request.param))
    return 0.2 + 0.6 * drawn[None]


def blurred(picture: Tensor) -> Tensor:
    return avg_pool2d(pad(picture, (1, 1, 1, 1), mode="replicate"), 3, stride=1)


def noisy(picture: Tensor) -> Tensor:
    noise = torch.randn(1, 1, SIZE, SIZE, generator=torch.Generator().manual_seed(0))
    return picture + 0.05 * noise


def checkered(picture: Tensor) -> Tensor:
    number = torch.arange(SIZE)
    return picture + 0.05 * (1 - 2 * ((number[:, None] + number) % 2))


def washed_out(picture: Tensor) -> Tensor:
    """Half the broad contrast, the grain and the colours as they were."""
    broad = picture
    for _ in range(4):
        broad = blurred(broad)
    lightness = broad.mean(1, keepdim=True)
    return picture + 0.5 * (lightness.mean() - lightness)


def greyed(picture: Tensor) -> Tensor:
    red, green, blue = picture.split(1, dim=1)
    luma = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return luma + 0.4 * (picture - luma)


@pytest.mark.parametrize(
    ("damage", "seen_by", "low", "high"),
    [
        (blurred, "grain", 0, 0.5),
        (noisy, "grain", 1.2, 3),
        (checkered, "grain", 1.2, 3),
        (washed_out, "local contrast", 0.5, 0.7),
        (greyed, "saturation", 0.39, 0.41),
    ],
)
def test_damage_is_seen_by_its_probe_alone(
    picture: Tensor,
    damage: Callable[[Tensor], Tensor],
    seen_by: str,
    low: float,
    high: float,
) -> None:
    before, after = probe(picture), probe(damage(picture))
    assert low < after.pop(seen_by) / before.pop(seen_by) < high
    assert after == pytest.approx(before, **HARDLY)


def test_a_dark_frame_is_seen_by_its_probe_alone(picture: Tensor) -> None:
    dark = picture - 0.15
    dark[..., 8:-8, 8:-8] = picture[..., 8:-8, 8:-8]
    before, after = probe(picture), probe(dark)
    assert after.pop("border lightness") - before.pop("border lightness") == pytest.approx(-0.15)
    assert after == pytest.approx(before, **HARDLY)


@pytest.mark.parametrize(("channel", "share"), [(0, 0.2126), (1, 0.7152), (2, 0.0722)])
def test_lightness_is_luma(channel: int, share: float) -> None:
    frame = torch.zeros(1, 3, 32, 48)
    frame[:, channel] = 1
    frame[..., 2:-2, 2:-2] = 0
    assert probe(frame)["border lightness"] == pytest.approx(share)


def test_a_flat_colour_has_no_grain_and_no_contrast() -> None:
    orange = torch.tensor([0.9, 0.5, 0.1])[:, None, None].expand(1, 3, 32, 48)
    expected = {"grain": 0, "local contrast": 0, "saturation": 0.8, "border lightness": 0}
    assert probe(orange) == pytest.approx(expected, abs=1e-6)


def test_a_picture_smaller_than_a_window_can_be_probed() -> None:
    halves = torch.tensor([0.0, 1.0]).repeat_interleave(2).expand(1, 3, 1, 4)
    found = probe(halves)
    blurred = [1 / 16, 5 / 16, 11 / 16, 15 / 16]
    assert found["local contrast"] == pytest.approx(pstdev(blurred))
    assert found["border lightness"] == 0  # there is no centre
