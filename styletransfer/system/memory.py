"""How much memory is left, and whether an error means that there was not enough."""

import math
from collections.abc import Iterator
from pathlib import Path

import psutil
import torch

from styletransfer.system.heap import return_freed_memory
from styletransfer.system.launch import place

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

    On the CPU that is the least of what the machine has available, what every control group around
    the process leaves, shared between the job's processes on this machine, and what `ulimit -v`
    leaves; so it is on an accelerator that shares the machine's memory and keeps no count.
    """
    if device.type != "cpu":
        try:
            free, _ = torch.accelerator.get_memory_info(device)
        except (NotImplementedError, RuntimeError):  # torch cannot tell, as on MPS
            pass
        else:
            # What torch's allocator holds in reserve is free as well.
            held = torch.accelerator.memory_reserved(device)
            return float(free + held - torch.accelerator.memory_allocated(device))
    return_freed_memory()  # what lies idle in the heap would look taken
    available = min(float(psutil.virtual_memory().available), *left_by_groups())
    return max(0.0, min(available / place().local_count, _left_by_ulimit()))


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


def left_by_groups(root: Path = Path("/")) -> Iterator[float]:
    """Yield what each control group that holds this process leaves, its ancestors included.

    Args:
        root: of the file system that has the kernel's `proc` and `sys`.
    """
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
                left = _number(folder / limit) - _number(folder / used, unknown=0)
                kept = _field(folder / "memory.stat", reclaimable, unknown=0)
                yield left + kept
            if folder == mount:
                break


def _left_by_ulimit() -> float:
    if not hasattr(psutil, "RLIMIT_AS"):  # Linux and FreeBSD have this limit
        return math.inf
    process = psutil.Process()
    limit, _ = process.rlimit(psutil.RLIMIT_AS)
    return math.inf if limit == psutil.RLIM_INFINITY else limit - process.memory_info().vms


def _number(path: Path, unknown: float = math.inf) -> float:
    """Return the number that a file holds; cgroup files say "max" for no limit."""
    try:
        return float(path.read_text())
    except (OSError, ValueError):
        return unknown


def _field(path: Path, name: str, unknown: float = math.inf) -> float:
    """Return the number after `name` in a file of such lines."""
    try:
        rows = [line.split() for line in path.read_text().splitlines()]
    except OSError:
        return unknown
    return next((float(row[1]) for row in rows if row[0] == name), unknown)
