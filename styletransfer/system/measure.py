"""Time, memory and calls of a piece of work, so that several ways compare; tables of such."""

import functools
import os
import platform
import statistics
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.autograd.profiler import profile

from styletransfer.system.devices import cpu_bfloat16_units

Work = Callable[[], object]


def median_seconds(work: Mapping[str, Work], rounds: int, device: torch.device) -> dict[str, float]:
    """Return name -> median wall time of one call, in seconds; see `seconds_by_round`."""
    seconds = seconds_by_round(work, rounds, device)
    return {name: statistics.median(times) for name, times in seconds.items()}


def seconds_by_round(
    work: Mapping[str, Work],
    rounds: int,
    device: torch.device,
    after: Callable[[], object] = lambda: None,
) -> dict[str, list[float]]:
    """Return name -> wall time of one call in seconds, for each of at least one round.

    Each is called once to warm up. Then every round calls all of them, each time beginning with
    another, so that a machine that drifts slows all of them alike. The device's queue is drained
    before and after each call; `after` is called after each, off the clock.
    """
    names = list(work)
    for call in work.values():
        call()
        after()
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for first in range(rounds):
        shift = first % len(names)
        for name in names[shift:] + names[:shift]:
            began = now(device)
            work[name]()
            seconds[name].append(now(device) - began)
            after()
    return seconds


def now(device: torch.device) -> float:
    """Return seconds on a clock that runs evenly, once the device has done what it was asked."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)
    return time.perf_counter()


def peak_memory(work: Work, device: torch.device) -> int:
    """Return how many bytes of tensors one call needs at its peak, above what is held before it.

    On an accelerator these are the statistics of torch's allocator. On the CPU the profiler logs
    every allocation and release, and the peak of their running sum is returned: the same number
    every time, free of what the C library keeps or other threads do. Neither sees memory that a
    library takes behind torch's back.

    The work is called twice on `device`; the first call, unmeasured, fills caches that later calls
    share. It should hold no tensor back, or the second one begins by releasing what the first held.
    """
    work()
    if device.type != "cpu":
        torch.accelerator.synchronize(device)
        torch.accelerator.reset_peak_memory_stats(device)
        before: int = torch.accelerator.memory_allocated(device)
        work()
        torch.accelerator.synchronize(device)
        return torch.accelerator.max_memory_allocated(device) - before
    # Kineto, below the profiler, would report its own progress on standard error.
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    with profile(profile_memory=True) as recorded:
        work()
    assert recorded.kineto_results is not None
    events = [event for event in recorded.kineto_results.events() if event.name() == "[memory]"]
    level = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        level += event.nbytes()
        peak = max(peak, level)
    return peak


@contextmanager
def counted(*places: tuple[Any, str]) -> Iterator[list[str]]:
    """List the names of functions that are called while the body runs; calls go through unchanged.

    Each is given as (module or class, name of its function), such as (torch.autograd, "backward").
    """
    calls: list[str] = []

    def counting(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            calls.append(function.__name__)
            return function(*args, **kwargs)

        return call

    with ExitStack() as patches:
        for owner, name in places:
            original = getattr(owner, name)
            patches.callback(setattr, owner, name, original)
            setattr(owner, name, counting(original))
        yield calls


def describe_machine(device: torch.device, dtype: torch.dtype) -> dict[str, str | int]:
    """Return what a measurement depends on, in general terms: processor, versions, precision."""
    named = getattr(torch.get_device_module(device), "get_device_name", None)
    return {
        "device": device.type if named is None else named(device),
        "processor": platform.machine(),
        "instructions": ", ".join([torch.backends.cpu.get_cpu_capability(), *cpu_bfloat16_units()]),
        "cores": os.cpu_count() or 1,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "precision": str(dtype).removeprefix("torch."),
    }


def table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], left: Collection[int] = (0,)
) -> str:
    """Return a Markdown table, its columns padded to one width and, but for `left`, set right.

    Those are the numbers, from 0, of the columns of words.
    """
    columns = list(zip(headings, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    ends = [("<", "-") if column in left else (">", ":") for column in range(len(columns))]
    rule = ["-" * (width - 1) + end for width, (_, end) in zip(widths, ends, strict=True)]
    cells = [f"{{:{side}{width}}}" for width, (side, _) in zip(widths, ends, strict=True)]
    line = f"| {' | '.join(cells)} |"
    return "\n".join(line.format(*row) for row in (headings, rule, *rows))
