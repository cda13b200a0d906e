"""Signals: held while work must complete, and raised afterwards."""

import signal
import threading
from contextlib import suppress

import pytest
from helpers import press

from styletransfer.system.signals import (
    STOPPING,
    Stopped,
    interruptible,
    signals_held,
    stop_on_signals,
)

pytestmark = pytest.mark.usefixtures("signals")


@pytest.mark.parametrize("number", STOPPING)
def test_a_signal_raises_at_once_each_time(number):
    with stop_on_signals() as stop:
        for _ in range(2):
            with pytest.raises(Stopped) as stopped:
                press(number)
            assert stopped.value.status == 128 + number
            assert isinstance(stopped.value, KeyboardInterrupt)
    with stop_on_signals(), signals_held(), interruptible():
        assert stop.asked is None  # an earlier signal is not repeated


def test_what_is_held_is_finished_but_for_interruptible_parts():
    done = []
    with stop_on_signals() as stop:
        with signals_held():
            press(signal.SIGINT)
            press(signal.SIGTERM)
            done.append(1)
            with pytest.raises(Stopped), interruptible():
                pytest.fail("not reached")
            done.append(2)
        assert stop.asked.status == 130
    with stop_on_signals(), signals_held():
        with pytest.raises(Stopped), interruptible():
            press(signal.SIGINT)
        press(signal.SIGINT)
        done.append(3)
    assert done == [1, 2, 3]


def test_handlers_are_restored_and_ignored_signals_stay():
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    before = [signal.getsignal(number) for number in STOPPING]
    with suppress(ZeroDivisionError), stop_on_signals() as stop:
        assert [signal.getsignal(number) for number in STOPPING] != before
        press(signal.SIGHUP)
        assert stop.asked is None
        raise ZeroDivisionError
    assert [signal.getsignal(number) for number in STOPPING] == before


def test_another_thread_has_no_signals():
    """Check that another thread sets no handlers and does not hold the main thread's signals."""
    before = [signal.getsignal(number) for number in STOPPING]
    inside, leave, seen = threading.Event(), threading.Event(), []

    def work():
        with stop_on_signals() as stop, signals_held():
            seen.extend(signal.getsignal(number) for number in STOPPING)
            inside.set()
            leave.wait(60)
            with interruptible():
                seen.append(stop.asked)

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait(60)
    with pytest.raises(Stopped), stop_on_signals():
        press(signal.SIGINT)
    leave.set()
    thread.join()
    assert seen == [*before, None]
