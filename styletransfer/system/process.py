"""This process: its rank in the job, and the freed memory that it keeps. Imports no torch.

torchrun sets the rank in the environment. The memory of freed tensors is kept for later tensors,
because glibc returns every freed block of more than 32 MiB to the kernel, and requesting new pages
took a fifth of the time at 2048 and 4096 pixels. Other C libraries are not changed, nor is glibc
before 2.35, whose setting ends at 32 MiB.
"""

import ctypes
import os
import sys
from contextlib import suppress
from dataclasses import dataclass

from styletransfer.errors import UserError

# Environment variables, set by torchrun, for the fields of Place.
VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
# Parameters of mallopt, from glibc's malloc.h.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
# Largest freed block that is kept, in bytes. Larger ones are few, live long, and leave holes in the
# heap (4.0 instead of 2.9 GiB for one gradient at 4096 x 4096 in tiles).
LARGEST = 192 * 2**20
# Bytes of free memory kept at the heap's end: mallopt's largest value.
KEPT_AT_MOST = 2**31 - 1


@dataclass(frozen=True)
class Place:
    """A place is the rank of a process in a job, in which only rank 0 writes files.

    Ranks count from 0: among all `count` processes, and the `local_count` ones on this machine.
    """

    rank: int = 0
    count: int = 1
    local_rank: int = 0
    local_count: int = 1


def place() -> Place:
    """Return this process's rank; rank 0 of 1 without torchrun (UserError: bad variables)."""
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
    """Let this process keep freed blocks of up to LARGEST bytes."""
    library = _glibc()
    if library is not None and library.mallopt(M_MMAP_THRESHOLD, LARGEST):
        library.mallopt(M_TRIM_THRESHOLD, KEPT_AT_MOST)


def return_freed_memory() -> None:
    """Return the heap's free memory to the system now."""
    if (library := _glibc()) is not None:
        library.malloc_trim(0)


def _glibc() -> ctypes.CDLL | None:
    library = ctypes.CDLL(None) if sys.platform.startswith("linux") else None
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None
