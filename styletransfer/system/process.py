"""This process: its place among those of a job, and the memory that it keeps. Without torch.

torchrun tells each process its place by its environment. Memory of tensors that are gone is kept
for those that follow: glibc gives every block of more than 32 MiB back to the kernel at once, and
to ask for new pages took a fifth of the time at 2048 and 4096 pixels. Other C libraries are left as
they are, and so is glibc before 2.35, which allows no more.
"""

import ctypes
import os
import sys
from contextlib import suppress
from dataclasses import dataclass

from styletransfer.errors import UserError

# In the order of the fields of Place.
VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
# Parameters of mallopt, from glibc's malloc.h.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
# Of a block. Larger ones are few and stay long: between others they would leave holes in the heap
# (4.0 instead of 2.9 GiB for one gradient at 4096 x 4096 in tiles).
LARGEST = 192 * 2**20
# Of free memory at the heap's end: the largest value that mallopt takes.
KEPT_AT_MOST = 2**31 - 1


@dataclass(frozen=True)
class Place:
    """A process among those of a job, the first of which writes for all.

    Numbers count from 0, among all processes and among those on this machine.
    """

    rank: int = 0
    count: int = 1
    local_rank: int = 0
    local_count: int = 1


def place() -> Place:
    """Return this process's place, alone without torchrun (UserError: the environment is odd)."""
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        return Place()
    with suppress(KeyError, ValueError):
        here = Place(*(int(os.environ[name]) for name in VARIABLES))
        if 0 <= here.local_rank < here.local_count <= here.count > here.rank >= 0:
            return here
    raise UserError(
        f"{', '.join(VARIABLES)} in the environment are not all numbers, or contradict each other; "
        "start with torchrun, or unset them"
    )


def keep_freed_memory() -> None:
    """Let this process keep what its tensors free, from now on."""
    library = _glibc()
    if library is not None and library.mallopt(M_MMAP_THRESHOLD, LARGEST):
        library.mallopt(M_TRIM_THRESHOLD, KEPT_AT_MOST)


def return_freed_memory() -> None:
    """Give back to the system what is free in the heap at this moment."""
    if (library := _glibc()) is not None:
        library.malloc_trim(0)


def _glibc() -> ctypes.CDLL | None:
    library = ctypes.CDLL(None) if sys.platform.startswith("linux") else None
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None
