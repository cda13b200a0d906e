"""Stopping where nothing is lost: what Ctrl-C, SIGTERM and SIGHUP do to a run.

Within `stop_on_signals` each of them raises `Stopped`; but within `signals_held` it only does so
inside `interruptible`, and otherwise waits for the next such part. So whatever is held and not
marked as interruptible (a step's bookkeeping, a file that is being written) is finished whatever is
pressed. Handlers belong to the main thread; in any other one nothing here has an effect.
"""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from types import FrameType
from typing import Any

# SIGTERM is what schedulers send, SIGHUP what a closed terminal does. Windows has no SIGHUP.
STOPPING = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]

# Seconds after which a destructor has ended.
AGAIN = 0.05


class Stopped(KeyboardInterrupt):
    """A signal asked the program to stop."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.status = 128 + number  # the exit status that says so


class Stop(threading.local):
    """How this thread stands, since `stop_on_signals` began: what was asked, and what waits."""

    asked: Stopped | None = None  # the first signal that came, whether or not it has been raised
    is_watched = False
    is_held = False


HERE = Stop()


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """Let the signals raise `Stopped`; put the handlers that were there before back at the end.

    A signal that is ignored, as `nohup` and a shell's background jobs have it, stays ignored.
    Within another `stop_on_signals` this one changes nothing.
    """
    if HERE.is_watched:
        yield HERE
        return
    before, hook = {}, sys.unraisablehook
    is_main = threading.current_thread() is threading.main_thread()
    try:
        HERE.is_watched = True
        if is_main:
            for number in STOPPING:
                if signal.getsignal(number) not in (signal.SIG_IGN, None):
                    before[number] = signal.signal(number, _receive)
            sys.unraisablehook = partial(_send_again, hook)
        yield HERE
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if is_main:
            sys.unraisablehook = hook
        HERE.asked, HERE.is_watched = None, False


def signals_held() -> AbstractContextManager[None]:
    """Let signals wait, but for parts that are `interruptible`."""
    return _standing(is_held=True)


def interruptible() -> AbstractContextManager[None]:
    """Mark a part of what is held that may be left at any point, and raise what has waited."""
    return _standing(is_held=False)


@contextmanager
def _standing(**changes: bool) -> Iterator[None]:
    before = {name: getattr(HERE, name) for name in changes}
    try:
        vars(HERE).update(changes)
        raise_waiting()
        yield
    finally:
        vars(HERE).update(before)


def raise_waiting() -> None:
    """Raise what has waited, unless it still has to."""
    if HERE.asked is not None and not HERE.is_held:
        raise HERE.asked


def _receive(number: int, frame: FrameType | None) -> None:
    HERE.asked = HERE.asked or Stopped(number)
    raise_waiting()


def _send_again(hook: Callable[[Any], object], unraisable: Any) -> None:
    """Send a signal again whose exception Python has dropped, as a `sys.unraisablehook`.

    It drops what is raised in a destructor and the like; the rest goes to the `hook` before.
    """
    if isinstance(unraisable.exc_value, Stopped):
        number = unraisable.exc_value.status - 128
        threading.Timer(AGAIN, signal.raise_signal, [number]).start()
    else:
        hook(unraisable)
