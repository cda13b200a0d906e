"""The free memory, and detection of errors that mean too little."""

import math
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import torch

from styletransfer.system.process import place, return_freed_memory

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

    On the CPU this is the available memory of the machine or container, divided by the job's
    processes on this machine. An accelerator that reports no numbers, such as MPS, shares the
    machine's memory and counts as the CPU.
    """
    if device.type != "cpu":
        with suppress(NotImplementedError, RuntimeError):  # torch has no such query, as on MPS
            free, _ = torch.accelerator.get_memory_info(device)
            # Memory that torch has reserved but not used is free too.
            reserved = torch.accelerator.memory_reserved(device)
            return float(free + reserved - torch.accelerator.memory_allocated(device))
    return_freed_memory()  # freed memory in the heap would count as used
    return available_memory() / place().local_count


def available_memory(root: Path = Path("/")) -> float:
    """Return the available bytes of the machine, or of the container if fewer.

    `root` is the folder of the kernel's `proc` and `sys`.
    """
    return max(0.0, min(float(psutil.virtual_memory().available), *_left_in_groups(root)))


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


def _left_in_groups(root: Path) -> Iterator[float]:
    """Yield the bytes left in each control group of this process (kernel.org, cgroup-v2)."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        lines = []
    mount = root / "sys/fs/cgroup"
    for path in (line.removeprefix("0::") for line in lines if line.startswith("0::")):
        group = mount / path.lstrip("/")
        # In a container the path may be the host's; then only the mount folder exists.
        for folder in (group, *group.parents):
            used = _number(folder / "memory.current") - _number(
                folder / "memory.stat", "inactive_file"
            )
            yield _number(folder / "memory.max", unknown=math.inf) - used
            if folder == mount:
                break
    yield math.inf


def _number(path: Path, name: str = "", unknown: float = 0.0) -> float:
    """Return a file's number, or the one after `name`; `unknown` if none, as for "max"."""
    try:
        rows = [line.split() for line in path.read_text().splitlines()]
        return next(float(row[-1]) for row in rows if not name or row[0] == name)
    except (OSError, ValueError, LookupError, StopIteration):
        return unknown
