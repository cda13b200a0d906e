"""Measures how much time and memory a function takes."""

import os
import time
from collections.abc import Callable, Mapping
from itertools import accumulate

import torch
from torch.autograd.profiler import profile

Work = Callable[[], object]


def seconds_by_round(
    work: Mapping[str, Work],
    rounds: int,
    device: torch.device,
    after: Callable[[], object] = lambda: None,
) -> dict[str, list[float]]:
    """Return name -> seconds of one call in each round; `rounds` is 1 or more.

    Every round begins with another function, so that a machine that slows down affects all alike.
    One more round comes first, and is not counted. `after` is called after each call, untimed.
    """
    names = list(work)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds + 1):  # the first round warms up
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            began = now(device)
            work[name]()
            seconds[name].append(now(device) - began)
            after()
    return {name: times[1:] for name, times in seconds.items()}


def now(device: torch.device) -> float:
    """Return the seconds of a monotonic clock, after waiting for the device's pending work."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)
    return time.perf_counter()


def peak_memory(work: Work, device: torch.device) -> int:
    """Return the peak number of bytes in tensors during a call, minus the bytes before the call.

    The CPU's number, from the profiler's log of allocations, is the same every time. Memory that a
    library allocates without torch is not included. `work` is called once before, to fill caches.
    It should keep no tensor, or the second call begins by freeing the tensors of the first.
    """
    work()
    if device.type != "cpu":
        torch.accelerator.synchronize(device)
        torch.accelerator.reset_peak_memory_stats(device)
        before: int = torch.accelerator.memory_allocated(device)
        work()
        torch.accelerator.synchronize(device)
        return torch.accelerator.max_memory_allocated(device) - before
    # Kineto, the profiler's library, would log its progress on standard error.
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    with profile(profile_memory=True) as recorded:
        work()
    assert recorded.kineto_results is not None
    events = [event for event in recorded.kineto_results.events() if event.name() == "[memory]"]
    events.sort(key=lambda event: event.start_ns())
    peak: int = max(accumulate((event.nbytes() for event in events), initial=0))
    return peak
