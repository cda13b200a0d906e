"""Keeps the memory of tensors that are gone for those that follow.

glibc gives every block of more than 32 MiB back to the kernel at once, and each evaluation asks for
its activations again: new pages, one fault for 4 KiB, filled with zeros. That took a fifth of the
time at 2048 and 4096 pixels. Other C libraries are left as they are, and so is glibc before 2.35,
which allows no more. A module of its own, as it is called where torch may never be imported.
"""

import ctypes
import sys

# Parameters of mallopt, from glibc's malloc.h.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
# Of a block. Larger ones are few and stay long: between others they would leave holes in the heap
# (4.0 instead of 2.9 GiB for one gradient at 4096 x 4096 in tiles).
LARGEST = 192 * 2**20
# Of free memory at the heap's end: the largest value that mallopt takes.
KEPT_AT_MOST = 2**31 - 1


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
