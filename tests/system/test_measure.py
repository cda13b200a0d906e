"""Time, memory and calls, measured."""

import pytest
import torch

from styletransfer.system.measure import (
    counted,
    describe_machine,
    median_seconds,
    peak_memory,
    seconds_by_round,
)

CPU = torch.device("cpu")


def test_peak_memory_is_the_sum_of_what_lives_at_once():
    count = 1000
    assert peak_memory(lambda: torch.ones(count) + torch.ones(count), CPU) == 3 * 4 * count
    assert peak_memory(lambda: (torch.ones(count), torch.ones(count)), CPU) == 2 * 4 * count
    assert peak_memory(lambda: [torch.ones(count).sum() for _ in range(5)], CPU) < 2 * 4 * count


def test_peak_memory_sees_the_saved_tensors_of_a_graph():
    def forward(depth):
        x = torch.ones(1000, requires_grad=True)
        for _ in range(depth):
            x = x.exp()
        x.sum().backward()

    difference = peak_memory(lambda: forward(9), CPU) - peak_memory(lambda: forward(4), CPU)
    assert difference == 5 * 4000


def test_median_seconds_takes_turns_after_a_warm_up():
    called = []
    work = {name: lambda name=name: called.append(name) for name in "abc"}
    assert set(median_seconds(work, 2, CPU)) == set("abc")
    assert "".join(called) == "abc" + "abc" + "bca"


def test_counted_counts_once_and_restores():
    original = torch.autograd.backward
    x = torch.ones(2, requires_grad=True)
    with counted((torch.autograd, "backward")) as calls:
        x.sum().backward()
        torch.autograd.backward((2 * x).sum())
    x.sum().backward()
    assert calls.count == 2
    assert torch.autograd.backward is original
    assert x.grad.tolist() == [4.0, 4.0]


def test_seconds_by_round_has_one_time_per_round():
    called = []
    work = {name: lambda name=name: called.append(name) for name in "ab"}
    seconds = seconds_by_round(work, 3, CPU)
    assert {name: len(times) for name, times in seconds.items()} == {"a": 3, "b": 3}
    assert "".join(called) == "ab" + "ab" + "ba" + "ab"


@pytest.mark.parametrize(
    ("units", "told"),
    [
        ({}, "AVX2"),
        ({"avx512_bf16": True, "amx_bf16": False}, "AVX2, AVX512-BF16"),
        ({"avx512_bf16": True, "amx_bf16": True}, "AVX2, AVX512-BF16, AMX"),
    ],
)
def test_the_machine_is_told_with_its_units_for_bfloat16(monkeypatch, units, told):
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: units)
    assert describe_machine(torch.device("cpu"), torch.float32)["instructions"] == told
