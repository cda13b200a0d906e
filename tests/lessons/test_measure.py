"""Measurement of memory: the peak of what torch allocates."""

import torch

from styletransfer.lessons.measure import peak_memory

CPU = torch.device("cpu")


def test_peak_memory_is_the_sum_of_what_lives_at_once():
    count = 1000
    assert peak_memory(lambda: torch.ones(count) + torch.ones(count), CPU) == 3 * 4 * count
    assert peak_memory(lambda: (torch.ones(count), torch.ones(count)), CPU) == 2 * 4 * count
    assert peak_memory(lambda: [torch.ones(count).sum() for _ in range(5)], CPU) < 2 * 4 * count
