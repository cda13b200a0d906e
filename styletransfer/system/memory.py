"""How much memory is left, and whether an error means too little."""

import math
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import torch

from styletransfer.system.process import place, return_freed_memory

# A limit of control groups, the memory used up, and what of that the kernel would give back,
# in version 2 and in version 1 (kernel.org, admin-guide/cgroup-v2 and cgroup-v1/memory).
CGROUP_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
# What torch, its CPU allocator and oneDNN say, for want of a class of their own. oneDNN names no
# reason at all, but for a network that has run before there is no other.
SHORTAGE = (
    "out of memory",
    "not enough memory",
    "allocate memory",
    "bad_alloc",
    "could not create a primitive",
    "could not execute a primitive",
)


def free_bytes(device: torch.device) -> float:
    """Return how many bytes more this process can have on `device`.

    On the CPU that is what the machine or a control group leaves, shared between the job's
    processes on this machine, or what `ulimit -v` leaves; so it is on an accelerator that shares
    the machine's memory and keeps no count.
    """
    if device.type != "cpu":
        with suppress(NotImplementedError, RuntimeError):  # torch cannot tell, as on MPS
            free, _ = torch.accelerator.get_memory_info(device)
            # What torch's allocator holds in reserve is free as well.
            reserved = torch.accelerator.memory_reserved(device)
            return float(free + reserved - torch.accelerator.memory_allocated(device))
    return_freed_memory()  # what lies idle in the heap would look taken
    return max(0.0, min(memory_here()[1] / place().local_count, _left_by_ulimit()))


def memory_here(root: Path = Path("/")) -> tuple[float, float]:
    """Return the bytes that there are, and those available, on the machine or in a container.

    That is the least of what the machine has and what each control group around this process
    allows. The kernel's `proc` and `sys` are below `root`.
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
    if isinstance(error, SystemError):  # as Python's own regular expressions end without memory
        return "without exception set" in text
    return isinstance(error, RuntimeError) and any(words in text for words in SHORTAGE)


def readable(count: float) -> str:
    """Return a number of bytes as MiB or GiB, such as "2.6 GiB"."""
    mebibytes = count / 2**20
    return f"{mebibytes:.0f} MiB" if mebibytes < 1000 else f"{mebibytes / 1024:.1f} GiB"


def _groups(root: Path) -> Iterator[tuple[float, float]]:
    """Yield the limit of each control group that holds this process, and what is left of it."""
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
        # In a container the path may be that of the host; then only the mount itself is there.
        for folder in (group, *group.parents):
            for limit, used, reclaimable in CGROUP_FILES:
                most = _number(folder / limit, "", unknown=math.inf)
                spare = _number(folder / "memory.stat", reclaimable)
                yield most, most - _number(folder / used) + spare
            if folder == mount:
                break


def _left_by_ulimit() -> float:
    if not hasattr(psutil, "RLIMIT_AS"):  # Linux and FreeBSD have this limit
        return math.inf
    process = psutil.Process()
    limit, _ = process.rlimit(psutil.RLIMIT_AS)
    return math.inf if limit == psutil.RLIM_INFINITY else limit - process.memory_info().vms


def _number(path: Path, name: str = "", unknown: float = 0.0) -> float:
    """Return the number that a file holds, after a name where it has several; "max" is none."""
    try:
        rows = [line.split() for line in path.read_text().splitlines()]
        return next(float(row[-1]) for row in rows if not name or row[0] == name)
    except (OSError, ValueError, LookupError, StopIteration):
        return unknown
