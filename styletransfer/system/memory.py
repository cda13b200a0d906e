"""How much memory is left, and whether an error means that there was not enough."""

import math
from collections.abc import Iterator
from pathlib import Path

import torch

from styletransfer.system.heap import return_freed_memory

try:
    import resource
except ImportError:  # Windows has no limits of this kind
    resource = None  # type: ignore[assignment]

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
    """Return how many bytes more this process can have on `device`; infinity if nothing is known.

    On the CPU that is the least of what the machine has available, what every control group around
    the process leaves, and what `ulimit -v` leaves.
    """
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        # What torch's allocator holds in reserve is free as well.
        reserve = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return float(free + reserve)
    return_freed_memory()  # what lies idle in the heap would look taken
    return max(0.0, min(_available(), *_left_by_groups(), _left_by_ulimit()))


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether an error means that memory ran out."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and any(words in text for words in SHORTAGE)


def readable(count: float) -> str:
    """Return a number of bytes as MiB or GiB, such as "2.6 GiB"."""
    mebibytes = count / 2**20
    return f"{mebibytes:.0f} MiB" if mebibytes < 1000 else f"{mebibytes / 1024:.1f} GiB"


def _available(root: Path = Path("/")) -> float:
    return _field(root / "proc/meminfo", "MemAvailable:") * 1024


def _left_by_groups(root: Path = Path("/")) -> Iterator[float]:
    """Yield what each control group that holds this process leaves, its ancestors included."""
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


def _left_by_ulimit(root: Path = Path("/")) -> float:
    if resource is None:
        return math.inf
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return math.inf
    return limit - _field(root / "proc/self/status", "VmSize:", unknown=0) * 1024


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
