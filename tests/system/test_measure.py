"""Time, memory and calls, measured."""

import torch

from styletransfer.system.measure import counted, median_seconds, peak_memory, seconds_by_round

CPU = torch.device("cpu")


def test_peak_memory_is_the_sum_of_what_lives_at_once():
    count = 1000
    assert peak_memory(lambda: torch.ones(count) + torch.ones(count), CPU) == 3 * 4 * count
    assert peak_memory(lambda: (torch.ones(count), torch.ones(count)), CPU) == 2 * 4 * count
    assert peak_memory(lambda: [torch.ones(count).sum() for _ in range(5)], CPU) < 2 * 4 * count


def test_all_take_turns_after_a_warm_up():
    called = []
    work = {name: lambda name=name: called.append(name) for name in "abc"}
    assert set(median_seconds(work, 2, CPU)) == set("abc")
    assert "".join(called) == "abc" + "abc" + "bca"
    seconds = seconds_by_round(work, 3, CPU)
    assert {name: len(times) for name, times in seconds.items()} == {"a": 3, "b": 3, "c": 3}


def test_counted_counts_once_and_restores():
    original = torch.autograd.backward
    x = torch.ones(2, requires_grad=True)
    with counted((torch.autograd, "backward"), (torch.autograd, "grad")) as calls:
        x.sum().backward()
        torch.autograd.backward((2 * x).sum())
        torch.autograd.grad(x.sum(), x)
    x.sum().backward()
    assert calls == ["backward", "backward", "grad"]
    assert torch.autograd.backward is original
    assert x.grad.tolist() == [4.0, 4.0]
