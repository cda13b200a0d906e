"""The free memory, and detection of errors that mean too little."""

import math
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import torch

from styletransfer.system.process import place, return_freed_memory

# A control group's files of limit and used memory, and memory.stat's key of reclaimable memory, in
# version 2 and in version 1 (kernel.org, admin-guide/cgroup-v2 and cgroup-v1/memory).
CGROUP_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
# Parts of messages with which torch, its CPU allocator and oneDNN report a lack of memory in a
# RuntimeError. oneDNN names no reason, but a network that has run before fails for no other.
SHORTAGE = (
    "out of memory",
    "not enough memory",
    "allocate memory",
    "bad_alloc",
    "could not create a primitive",
    "could not execute a primitive",
)


def free_bytes(device: torch.device) -> float:
    """Return how many more bytes this process can allocate on `device`.

    On the CPU this is the available memory of the machine or control group, divided by the job's
    processes on this machine, or the rest of `ulimit -v` if smaller. An accelerator that reports no
    numbers, such as MPS, shares the machine's memory and counts as the CPU.
    """
    if device.type != "cpu":
        with suppress(NotImplementedError, RuntimeError):  # torch cannot tell, as on MPS
            free, _ = torch.accelerator.get_memory_info(device)
            # Memory that torch has reserved but not used is free too.
            reserved = torch.accelerator.memory_reserved(device)
            return float(free + reserved - torch.accelerator.memory_allocated(device))
    return_freed_memory()  # freed memory in the heap would count as used
    return max(0.0, min(memory_here()[1] / place().local_count, _left_by_ulimit()))


def memory_here(root: Path = Path("/")) -> tuple[float, float]:
    """Return the total and the available bytes of the machine or container.

    Each number is the least of the machine's and those of all control groups of this process.
    `root` is the folder of the kernel's `proc` and `sys`.
    """
    machine = psutil.virtual_memory()
    groups = [(float(machine.total), float(machine.available)), *_groups(root)]
    total, available = map(min, zip(*groups, strict=True))
    return total, available


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether an error means that memory ran out."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    text = str(error).lower()
    if isinstance(error, SystemError):  # Python's regular expressions raise it without memory
        return "without exception set" in text
    return isinstance(error, RuntimeError) and any(words in text for words in SHORTAGE)


def readable(count: float) -> str:
    """Return a number of bytes as MiB or GiB, such as "2.6 GiB"."""
    mebibytes = count / 2**20
    return f"{mebibytes:.0f} MiB" if mebibytes < 1000 else f"{mebibytes / 1024:.1f} GiB"


def _groups(root: Path) -> Iterator[tuple[float, float]]:
    """Yield (limit, bytes left) for each control group that contains this process."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        mount = root / "sys/fs/cgroup" / controllers
        group = mount / path.lstrip("/")
        # In a container the path may be the host's; then only the mount folder exists.
        for folder in (group, *group.parents):
            for limit, used, reclaimable in CGROUP_FILES:
                most = _number(folder / limit, "", unknown=math.inf)
                spare = _number(folder / "memory.stat", reclaimable)
                yield most, most - _number(folder / used) + spare
            if folder == mount:
                break


def _left_by_ulimit() -> float:
    if not hasattr(psutil, "RLIMIT_AS"):  # only Linux and FreeBSD have this limit
        return math.inf
    process = psutil.Process()
    limit, _ = process.rlimit(psutil.RLIMIT_AS)
    return math.inf if limit == psutil.RLIM_INFINITY else limit - process.memory_info().vms


def _number(path: Path, name: str = "", unknown: float = 0.0) -> float:
    """Return a file's number, or the one after `name`; `unknown` if none, as for "max"."""
    try:
        rows = [line.split() for line in path.read_text().splitlines()]
        return next(float(row[-1]) for row in rows if not name or row[0] == name)
    except (OSError, ValueError, LookupError, StopIteration):
        return unknown
