"""The resident memory of an evaluation, as the kernel counts it, in a process of its own.

`measure.peak_memory` counts torch's tensors, exactly and the same every time, but not what oneDNN
and the C library take behind torch's back, nor what an allocator is slow to give back. For one
large picture, where a person asks whether it fits, the resident set is the honest number. It is
measured in a new process, because in one that has worked before, freed memory that is still
resident hides part of the next peak.
"""

import multiprocessing
from pathlib import Path

import psutil
import torch

from styletransfer.system.process import keep_freed_memory
from tools.benchmark.config import BenchmarkConfig
from tools.benchmark.rows import Candidate, build_network, evaluation, in_precision, squares

# What psutil does not have: the peak, and a way to reset it.
STATUS = Path("/proc/self/status")
CLEAR = Path("/proc/self/clear_refs")


def is_measurable() -> bool:
    """Tell whether the system counts the resident set's peak, and lets it be reset: Linux does."""
    return STATUS.exists() and CLEAR.exists()


def peak_resident(config: BenchmarkConfig, candidate: Candidate, size: int) -> int:
    """Return how many bytes one evaluation, its targets included, adds to the resident set.

    Above what the process holds with network and pictures loaded, on the CPU, for a square picture
    of `size` pixels.
    """
    # Spawned, not forked: a fork would begin with all that this process has resident.
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_measure, (config, candidate, size, torch.get_num_threads()))


def _measure(config: BenchmarkConfig, candidate: Candidate, size: int, threads: int) -> int:
    torch.set_num_threads(threads)
    keep_freed_memory()
    device = torch.device("cpu")
    network = in_precision(build_network(config, device), candidate.precision)
    content, style = squares(config, size, device)
    CLEAR.write_text("5")  # sets the peak to what is resident now (man 5 proc)
    before: int = psutil.Process().memory_info().rss
    evaluation(config, candidate, network, content, style)()
    rows = (line.split() for line in STATUS.read_text().splitlines())
    peak = next(int(row[1]) * 1024 for row in rows if row[0] == "VmHWM:")
    return peak - before
