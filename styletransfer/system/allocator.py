"""Makes the C library keep freed memory for later tensors, or return it to the system.

glibc returns every freed block of more than 32 MiB to the kernel, and requesting new pages took a
fifth of a run's time at 2048 and 4096 pixels. The limit is changed only from glibc 2.35 on: older
versions allow no more than 32 MiB. This module imports no torch.
"""

import ctypes
import sys

# Parameters of mallopt, from glibc's malloc.h.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
# Largest freed block that is kept, in bytes. The features of a picture of 3072 x 2048 pixels at
# relu1_1 in bfloat16 are such a block (0.8 GiB). An evaluation of that picture takes 13.8 s, and
# 19.6 s if blocks above 192 MiB are returned.
LARGEST = 2**30
# Largest free memory at the heap's end that is kept, in bytes. mallopt takes no larger number.
KEPT_AT_MOST = 2**31 - 1


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
