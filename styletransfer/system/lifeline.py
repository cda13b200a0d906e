"""Processes that stop when the one that started them is asked to, or ends in whatever way.

The parent holds two locks on a file, for as long as its children are wanted and for as long as it
lives. Each child waits for them in a thread, takes the first for a SIGTERM and ends after the
second. The signals themselves are the parent's alone: while there may be children it blocks them,
in itself and so in what it starts, and waits for them in a thread. A child unblocks them where it
can stop without loss; until then it is not ended by a Ctrl-C, which the terminal sends to all.
"""

import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from multiprocessing.resource_tracker import ensure_running

from styletransfer.system.signals import STOPPING, Stopped

if sys.platform != "win32":
    import fcntl

# Bytes of the file, each with a lock: held while children are wanted, and while the parent lives.
WANTED, ALIVE = 0, 1

_at_work = threading.Lock()


class Lifeline(AbstractContextManager["Lifeline"]):
    """What the children follow: held until the first signal, or the end."""

    def __init__(self) -> None:
        # Closed with the process; the path is for `following`.
        self._file, self.path = tempfile.mkstemp(prefix="styletransfer-")
        self.asked: Stopped | None = None  # the first signal that came
        self._over = False
        fcntl.lockf(self._file, fcntl.LOCK_EX, 2)
        ensure_running()  # or else the first one to need it would unblock signals (Python < 3.13)
        self._before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
        self._thread = threading.Thread(target=self._wait, daemon=True)
        self._thread.start()

    def __exit__(self, *raised: object) -> None:
        self._over = True
        signal.pthread_kill(self._thread.ident or 0, signal.SIGTERM)
        self._thread.join()
        os.unlink(self.path)
        fcntl.lockf(self._file, fcntl.LOCK_UN, 1, WANTED)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._before)

    def _wait(self) -> None:
        """Let go of the children at a signal that is not ignored, until it is over."""
        wanted = {number for number in STOPPING if signal.getsignal(number) != signal.SIG_IGN}
        while not self._over:
            number = signal.sigwait({*wanted, signal.SIGTERM})
            if number in wanted and not self._over:
                self.asked = self.asked or Stopped(number)
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, WANTED)


def is_gone(path: str) -> bool:
    """Tell whether the parent has let go."""
    with suppress(FileNotFoundError), open(path, "rb") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, WANTED)
        except BlockingIOError:
            return False
    return True


@contextmanager
def following(path: str) -> Iterator[None]:
    """Send the main thread a SIGTERM as soon as the parent lets go.

    The body is finished also if the parent has ended; the process ends after it.
    """
    if not any(thread.name == path for thread in threading.enumerate()):
        threading.Thread(target=_follow, args=(path,), name=path, daemon=True).start()
    with _at_work:
        yield


def _follow(path: str) -> None:
    with suppress(FileNotFoundError), open(path, "rb") as file:  # or it has ended in good order
        fcntl.lockf(file, fcntl.LOCK_SH, 1, WANTED)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
        fcntl.lockf(file, fcntl.LOCK_SH, 1, ALIVE)
        with _at_work:
            os._exit(128 + signal.SIGTERM)  # nobody waits for what this process would return


@contextmanager
def unblocked() -> Iterator[None]:
    """Let signals reach this process that the parent has blocked in it."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
