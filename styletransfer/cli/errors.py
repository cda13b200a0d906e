"""Turns errors and signals of a command into one line and an exit status.

This also works if standard output is full or closed.
"""

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

from styletransfer.errors import UserError
from styletransfer.resources import PACKAGE
from styletransfer.system.rank import process_rank
from styletransfer.system.signals import Stopped, signals_held, stop_on_signals

# Exit status if the program that read standard output closed it: 128 + SIGPIPE, as in other tools.
BROKEN_PIPE = 141


# Errors of a write to a full device. If such an error names no file, standard output is full,
# because all other writes name their file.
FULL = {getattr(errno, name, None) for name in ("ENOSPC", "EDQUOT", "EFBIG", "EIO")} - {None}


class Ended(SystemExit):
    """Raised to exit the program after `message` was printed."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(status)
        self.message = message


class LogFile(logging.FileHandler):
    """A LogFile leaves out lines that cannot be written, for example if its folder is gone.

    If its path is a symbolic link, it writes nothing, because a run's folder may come from somebody
    else, and the link may lead to another file of this user.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; with `delay=True`, the first record opens the file."""
        with suppress(OSError):
            if not os.path.islink(self.baseFilename):
                super().emit(record)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn errors of the `with` block into one line on standard error and an exit status.

    The status is 1 for bad input, an OSError or too little memory, 130 for Ctrl-C, 128 + N for
    signal N, and BROKEN_PIPE if the program that reads the output has ended. Signals wait, except
    in `interruptible` blocks. A warning also becomes one line. Any other error is a bug and keeps
    its traceback. Each process of torchrun prints its own error, because torchrun stops the other
    processes as soon as one has ended.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # the stream was closed before Python started
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A file's name may have bytes that are not UTF-8. They are printed unchanged, so that the
        # printed path can be used. Letters that another encoding lacks are printed as escapes.
        is_whole = sys.stdout.encoding.lower() in ("utf-8", "utf8")
        sys.stdout.reconfigure(errors="surrogateescape" if is_whole else "backslashreplace")
    logging.raiseExceptions = False  # no traceback if the disk of a log file is full
    with warnings.catch_warnings(), stop_on_signals() as stop, signals_held():
        warnings.showwarning = lambda message, *_: tell(f"note: {message}", shared=True)
        try:
            yield
            sys.stdout.flush()
            if stop.asked is not None:  # the signal came late, or a destructor lost its exception
                raise stop.asked
        except UserError as error:
            fail(str(error))
        except KeyboardInterrupt as error:
            asked = stop.asked or error  # stop.asked is None if another process got the signal
            status = asked.status if isinstance(asked, Stopped) else 130
            fail("interrupted", status, shared=True)
        except BrokenPipeError:  # the program that read the output has ended
            flush(sys.stdout)
            sys.exit(BROKEN_PIPE)
        except OSError as error:
            name = error.filename
            if name is None and error.errno in FULL:
                name = "cannot write standard output"
            known = [str(part) for part in (name, error.strerror) if part is not None]
            fail(": ".join(known) or str(error))
        except (ImportError, MemoryError, RuntimeError, SystemError) as error:
            if "failed to map segment" in str(error):
                fail("there is not enough memory to load PyTorch")
            if room := _missing_room(error):
                fail(f"this command needs the folder styletransfer/{room}, which is not installed")
            from styletransfer.system.devices import is_out_of_memory

            if not is_out_of_memory(error):
                raise
            fail("there is not enough memory; choose a smaller size")
        finally:
            atexit.unregister(end_at_once)
            atexit.register(end_at_once)  # registered last, so called first


def _missing_room(error: BaseException) -> str | None:
    """Return the name of the subpackage whose absence caused the error, or None."""
    if not isinstance(error, ModuleNotFoundError):
        return None
    package, _, rest = (error.name or "").partition(".")
    room = rest.partition(".")[0]
    is_there = any((PACKAGE / name).exists() for name in (room, f"{room}.py"))
    return None if package != "styletransfer" or is_there else room


def fail(message: str, status: int = 1, *, shared: bool = False) -> NoReturn:
    """Print `message` as an error, by `tell`, and exit with `status`."""
    tell(f"error: {message}", shared=shared)
    flush(sys.stdout)
    raise Ended(status, message)


def tell(message: str, *, shared: bool = False) -> None:
    """Print `message` as one line on standard error; do nothing if that fails.

    If `shared`, all processes of torchrun call this with the same message, and only the first
    process on a machine prints it.
    """
    with suppress(UserError):  # invalid variables of torchrun must not hide the message
        if shared and process_rank().local_rank:
            return
    with suppress(OSError):
        sys.stderr.write(f"{' '.join(message.split())}\n")  # one write: processes share the stream
    flush(sys.stderr)


def end_at_once() -> None:
    """Let Ctrl-C end the process without a traceback while Python is shutting down."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def flush(stream: TextIO) -> None:
    """Flush `stream`; if that fails, redirect it to the null device."""
    try:
        stream.flush()
    except OSError:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())
