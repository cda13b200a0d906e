"""Measures the resident memory of an evaluation, as the kernel counts it, in a separate process.

`measure.peak_memory` counts torch's tensors exactly and repeatably, but not the memory that oneDNN
and the C library allocate, nor freed memory that an allocator has not returned. Whether one large
picture fits into memory depends on the resident set, which includes both. The resident set is
measured in a new process, because in a used process freed memory that is still resident hides part
of the next peak.
"""

import multiprocessing
from pathlib import Path

import psutil
import torch

from benchmarks.evaluations.config import BenchmarkConfig
from benchmarks.evaluations.rows import Candidate, build_network, evaluation, in_precision, squares
from styletransfer.system.allocator import keep_freed_memory

# Linux files that give the peak of the resident set and reset it; psutil can do neither.
STATUS = Path("/proc/self/status")
CLEAR = Path("/proc/self/clear_refs")


def is_measurable() -> bool:
    """Return whether the system has the files STATUS and CLEAR, as Linux does."""
    return STATUS.exists() and CLEAR.exists()


def peak_resident(config: BenchmarkConfig, candidate: Candidate, size: int) -> int:
    """Return how many bytes one evaluation, its targets included, adds to the resident set.

    The evaluation is on the CPU, at a square picture of `size` pixels; the process has loaded the
    network and the pictures before.
    """
    # The process is spawned: a forked one would begin with all resident memory of this process.
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_measure, (config, candidate, size, torch.get_num_threads()))


def _measure(config: BenchmarkConfig, candidate: Candidate, size: int, threads: int) -> int:
    torch.set_num_threads(threads)
    keep_freed_memory()
    device = torch.device("cpu")
    network = in_precision(build_network(config, device), candidate.precision)
    content, style = squares(config, size, device)
    CLEAR.write_text("5")  # resets the peak to the present resident size (man 5 proc)
    before: int = psutil.Process().memory_info().rss
    evaluation(config, candidate, network, content, style)()
    rows = (line.split() for line in STATUS.read_text().splitlines())
    peak = next(int(row[1]) * 1024 for row in rows if row[0] == "VmHWM:")
    return peak - before
