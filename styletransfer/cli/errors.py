"""How a command ends: bad input in one line, and an output that cannot be written without noise."""

import atexit
import errno
import io
import logging
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn, TextIO

from styletransfer.errors import LostProcessError, UserError
from styletransfer.system.process import place
from styletransfer.system.signals import Stopped, signals_held, stop_on_signals

# What a shell reports of a process that SIGPIPE ended, as it does for other tools.
BROKEN_PIPE = 141
# What a device says that takes no more.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class Ended(SystemExit):
    """The program ends, having told why by its `message`."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(status)
        self.message = message


@contextmanager
def one_line_errors() -> Iterator[None]:
    """End in one line on standard error and exit status 1 if the body meets bad input.

    So does a lack of memory; and Ctrl-C with status 130, or that of the signal that came. Signals
    wait, but for what is `interruptible`. A warning becomes one line as well. A mistake of ours
    keeps its traceback.
    """
    open_streams()
    logging.raiseExceptions = False  # a log file on a full disk is no reason for a traceback
    with warnings.catch_warnings(), stop_on_signals() as stop, signals_held():
        warnings.showwarning = lambda message, *_: tell(f"note: {message}", shared=True)
        try:
            yield
            sys.stdout.flush()
            if stop.asked is not None:  # too late, or dropped by a destructor
                raise stop.asked
        except UserError as error:
            fail(str(error), shared=not isinstance(error, LostProcessError))
        except KeyboardInterrupt as error:
            asked = stop.asked or error  # another process may have been asked
            status = asked.status if isinstance(asked, Stopped) else 130
            fail("interrupted", status, shared=True)
        except OSError as error:
            fail_for(error)
        except (MemoryError, RuntimeError, SystemError) as error:
            from styletransfer.system.memory import is_out_of_memory

            if not is_out_of_memory(error):
                raise
            fail("there is not enough memory; choose a smaller size")
        finally:
            atexit.unregister(end_at_once)
            atexit.register(end_at_once)  # called before whatever has been registered by now


def fail(message: str, status: int = 1, *, shared: bool = False) -> NoReturn:
    """Print one line on standard error and leave; for `shared` see `tell`."""
    tell(f"error: {message}", shared=shared)
    flush(sys.stdout)
    raise Ended(status, message)


def fail_for(error: OSError) -> NoReturn:
    """Leave for the file that the error names, or an output that takes no more, or raise it."""
    if error.filename is not None:
        fail(f"{error.filename}: {error.strerror}")
    if isinstance(error, BrokenPipeError):  # whoever read our output has left
        flush(sys.stdout)
        sys.exit(BROKEN_PIPE)
    if error.errno in FULL:
        fail(f"cannot write: {error.strerror}")
    raise error


def tell(message: str, *, shared: bool = False) -> None:
    """Print one line on standard error, if that takes any.

    Of several processes that torchrun has started on a machine all tell what is `shared`, and only
    the first one is heard.
    """
    with suppress(UserError):  # the environment tells nonsense of this process's place
        if shared and place().local_rank:
            return
    with suppress(OSError):
        sys.stderr.write(f"{' '.join(message.split())}\n")  # one write: nothing comes between
    flush(sys.stderr)


def end_at_once() -> None:
    """Let Ctrl-C end the process without a traceback, now that Python is shutting down."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def open_streams() -> None:
    """Open the standard streams that are closed, and let them show any character somehow."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors != "backslashreplace":
        sys.stdout.reconfigure(errors="backslashreplace")


def flush(stream: TextIO) -> None:
    """Write what is held back; if that fails, let the rest go nowhere."""
    try:
        stream.flush()
    except OSError:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())
