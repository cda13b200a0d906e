"""Handles the signals that ask the program to stop: it raises them at once, or lets them wait.

Within `stop_on_signals` each of Ctrl-C, SIGTERM and SIGHUP raises `Stopped`. Within `signals_held`
a signal raises `Stopped` only in an `interruptible` block. Between these blocks a signal waits for
the next one or, after `signals_held` has ended, for the next call of a function of this module. So
all other work, such as writing a file, is completed. Python calls signal handlers in the main
thread only; in other threads these functions have no effect. Python drops an exception that is
raised in a destructor; the next call of one of these functions then raises it again.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType

# Ctrl-C sends SIGINT, a scheduler SIGTERM, a closed terminal SIGHUP; Windows has no SIGHUP.
STOPPING = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


class Stopped(KeyboardInterrupt):
    """Raised because a signal asked the program to stop."""

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

    A signal that is ignored, as under `nohup`, stays ignored. In the body of another
    `stop_on_signals`, this function does nothing.
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
    return _held(True)


def interruptible() -> AbstractContextManager[None]:
    """Return a context that signals may interrupt; on entry, a waiting signal is raised."""
    return _held(False)


@contextmanager
def _held(is_held: bool) -> Iterator[None]:
    before = SIGNALS.is_held
    try:
        SIGNALS.is_held = is_held
        raise_waiting()
        yield
    finally:
        SIGNALS.is_held = before


def raise_waiting() -> None:
    """Raise the signal that waits, if there is one, unless signals are held."""
    if SIGNALS.asked is not None and not SIGNALS.is_held:
        raise SIGNALS.asked


def _receive(number: int, frame: FrameType | None) -> None:
    SIGNALS.asked = SIGNALS.asked or Stopped(number)
    raise_waiting()
