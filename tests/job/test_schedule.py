"""The plan of a run: its scales and their steps, where it starts, and numbers that cannot be."""

import math
import re

import pytest
import torch
from helpers import picture, run_settings

from styletransfer.config import OptimizerConfig
from styletransfer.errors import UserError
from styletransfer.job.job import check_run, enlarge, parse_tile, pyramid, steps_at_scale
from styletransfer.pictures.images import resize


def test_a_pyramid_doubles_up_to_the_size():
    for size in (1, 17, 128, 180, 512, 1000, 4096):
        for scales in (0, 1, 2, 5):
            for steps in (1, 3, 500):
                sides = pyramid(size, scales, steps)
                assert sides[-1] == size
                assert 1 <= len(sides) <= min(scales or steps, steps)
                assert scales or len(sides) == 1 or sides[0] >= 128
                # Each is the finest over a power of 2, rounded to the nearest.
                for level, side in enumerate(reversed(sides)):
                    assert abs(side - size / 2**level) <= 0.5
    assert pyramid(512, 1, 100) == [512]
    assert pyramid(512, 0, 100) == pyramid(512, 3, 100) == [128, 256, 512]
    assert pyramid(511, 0, 100) == [128, 256, 511]
    assert pyramid(512, 3, 2) == [256, 512]


def test_scales_share_the_steps():
    for steps in range(1, 30):
        for scales in (1, 2, 3, 7):
            count = min(scales, steps)
            shares = [steps_at_scale(steps, count, index) for index in range(count)]
            assert sum(shares) == steps
            assert min(shares) >= 1
            assert shares == sorted(shares)
            even = shares if count <= 3 else shares[:-1]
            assert max(even) - min(even) <= 1
    # A fourth scale takes its steps from the coarse ones.
    assert [steps_at_scale(100, 3, index) for index in range(3)] == [33, 33, 34]
    assert [steps_at_scale(100, 4, index) for index in range(4)] == [19, 19, 20, 42]
    assert [steps_at_scale(5, 5, index) for index in range(5)] == [1, 1, 1, 1, 1]


def test_a_finer_scale_brings_back_half_the_detail_of_the_start():
    start = picture(32, 24) * 0.5 + 0.25
    height, width = size = (start.shape[2], start.shape[3])
    coarse = resize(start, (height // 2, width // 2))
    blur = resize(coarse, size)
    half = (blur + start) / 2
    assert torch.equal(enlarge(start, start, size, "content"), start)
    torch.testing.assert_close(enlarge(coarse, start, size, "content"), half)
    # What was done to the coarse picture stays done.
    torch.testing.assert_close(enlarge(coarse + 0.1, start, size, "style"), half + 0.1)
    assert torch.equal(enlarge(coarse, start, size, "noise"), blur)
    assert enlarge(torch.ones_like(coarse), start, size, "content").max() == 1


def test_what_is_no_tile():
    for text in ("-5", "0", "small", "1.5", ""):
        with pytest.raises(UserError, match="must be auto, off or a number of pixels above 0"):
            parse_tile(text)


@pytest.mark.parametrize(
    ("key", "wrong", "limits"),
    [
        ("history", [0], "1 or more"),
        ("learning_rate", [0.0, math.nan, 1e308], "above 0 and at "),
        ("preconditioner", [-1.0, math.inf], "finite, 0 or more"),
        ("plateau", [1.0, -0.1], "0 or more, below 1"),
        ("averaging", [1.0, -0.1], "0 or more, below 1"),
    ],
)
def test_numbers_that_cannot_be_are_refused(key, wrong, limits):
    for value in wrong:
        message = re.escape(f"optimizer.{key}={value} must be {limits}")
        with pytest.raises(UserError, match=f"^{message}"):
            check_run(run_settings(OptimizerConfig(**{key: value})))
    largest = OptimizerConfig(learning_rate=1e6)
    check_run(run_settings(largest, seed=2**63 - 1, color_strength=1.0))
