"""What every training of a network does beside its steps."""

import math

import pytest
import torch

from styletransfer.networks.training import schedule


@pytest.mark.parametrize("steps", [1, 9, 40, 600])
def test_the_learning_rate_rises_and_falls_to_zero(steps: int) -> None:
    optimizer = torch.optim.Adam([torch.zeros(1, requires_grad=True)], lr=0.3)
    course = schedule(optimizer, steps)
    warmup = min(50, steps // 10)
    for step in range(steps):
        rise = min(1, (step + 1) / (warmup + 1))
        fall = 0.5 + 0.5 * math.cos(math.pi * step / steps)
        assert optimizer.param_groups[0]["lr"] == pytest.approx(0.3 * rise * fall, rel=1e-12)
        optimizer.step()
        course.step()
    assert optimizer.param_groups[0]["lr"] == 0
