"""The machine. This file: the process, its rank, its signals, its freed memory; imports no torch.

torchrun sets the rank in the environment. The memory of freed tensors is kept for later tensors,
because glibc returns every freed block of more than 32 MiB to the kernel, and requesting new pages
took a fifth of the time at 2048 and 4096 pixels. Other C libraries are not changed, nor is glibc
before 2.35, whose setting ends at 32 MiB.

Within `stop_on_signals` each of Ctrl-C, SIGTERM and SIGHUP raises `Stopped`. Within `signals_held`
a signal raises it only inside an `interruptible` part, and otherwise waits for the next such part.
All other work (a step's bookkeeping, a file that is being written) is therefore completed. Python
calls signal handlers in the main thread only; in other threads these functions have no effect.
Python drops an exception that is raised in a destructor; the signal is then raised by the next call
of these functions.
"""

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from types import FrameType

from styletransfer.errors import UserError

# Environment variables, set by torchrun, for the fields of ProcessRank.
VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
# Parameters of mallopt, from glibc's malloc.h.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
# Largest freed block that is kept, in bytes. Larger ones are few, live long, and leave holes in the
# heap (4.0 instead of 2.9 GiB for one gradient at 4096 x 4096 in tiles).
LARGEST = 192 * 2**20
# Bytes of free memory kept at the heap's end: mallopt's largest value.
KEPT_AT_MOST = 2**31 - 1


@dataclass(frozen=True)
class ProcessRank:
    """A ProcessRank is the rank of a process in a job, in which only rank 0 writes files.

    Ranks count from 0: among all `world_size` processes, and the `local_world_size` ones on this
    machine.
    """

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0
    local_world_size: int = 1


def process_rank() -> ProcessRank:
    """Return this process's rank; rank 0 of 1 without torchrun (UserError: bad variables)."""
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        return ProcessRank()
    with suppress(KeyError, ValueError):
        here = ProcessRank(*(int(os.environ[name]) for name in VARIABLES))
        if 0 <= here.local_rank < here.local_world_size <= here.world_size > here.rank >= 0:
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


# Ctrl-C sends SIGINT, a scheduler SIGTERM, a closed terminal SIGHUP, which Windows lacks.
STOPPING = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


class Stopped(KeyboardInterrupt):
    """A signal asked the program to stop."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.status = 128 + number  # exit status, as in shells


class Stop(threading.local):
    """`Stop` holds the state of signals in this thread since `stop_on_signals` began."""

    asked: Stopped | None = None  # the first signal that came, whether or not it has been raised
    is_watched = False  # whether `stop_on_signals` is active
    is_held = False  # whether `signals_held` is active


SIGNALS = Stop()


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """Make SIGINT, SIGTERM and SIGHUP raise `Stopped` in the body; then restore the old handlers.

    A signal that is already ignored, as under `nohup` or in a background job, stays ignored.
    Within another `stop_on_signals` the call changes nothing.
    """
    if SIGNALS.is_watched:
        yield SIGNALS
        return
    before = {}
    is_main = threading.current_thread() is threading.main_thread()
    try:
        SIGNALS.is_watched = True
        for number in STOPPING if is_main else ():
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                before[number] = signal.signal(number, _receive)
        yield SIGNALS
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        SIGNALS.asked, SIGNALS.is_watched = None, False


def signals_held() -> AbstractContextManager[None]:
    """Return a context in which signals wait, except in `interruptible` parts."""
    return _holding(True)


def interruptible() -> AbstractContextManager[None]:
    """Return a context that a signal may interrupt; on entry raise a signal that waits."""
    return _holding(False)


@contextmanager
def _holding(is_held: bool) -> Iterator[None]:
    before = SIGNALS.is_held
    try:
        SIGNALS.is_held = is_held
        raise_waiting()
        yield
    finally:
        SIGNALS.is_held = before


def raise_waiting() -> None:
    """Raise a signal that waits, unless signals are held."""
    if SIGNALS.asked is not None and not SIGNALS.is_held:
        raise SIGNALS.asked


def _receive(number: int, frame: FrameType | None) -> None:
    SIGNALS.asked = SIGNALS.asked or Stopped(number)
    raise_waiting()
