"""The console command `styletransfer`; each script calls one of its commands.

Errors of a command become one line and an exit status, also if standard output is full or closed.
"""

import atexit
import difflib
import importlib
import io
import logging
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NoReturn, TextIO

from styletransfer import __version__
from styletransfer.errors import UserError
from styletransfer.settings.registry import COMMANDS, command, module
from styletransfer.system import Stopped, interruptible, process_rank, signals_held, stop_on_signals

OVERVIEW = """\
Neural style transfer: two pictures in, one painting out.

usage: styletransfer COMMAND KEY=VALUE ...

{commands}

styletransfer COMMAND --help says what each key means; styletransfer --version, which version.
Try: styletransfer train content=photo.jpg style=painting.jpg output=pastiche.png
"""
# Exit status if the program that read standard output closed it: 128 + SIGPIPE, as in other tools.
BROKEN_PIPE = 141


class Ended(SystemExit):
    """Raised to exit the program after `message` was printed."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(status)
        self.message = message


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn errors of the `with` block into one line on standard error and an exit status.

    The status is 1 for bad input, an OSError or too little memory, 130 for Ctrl-C, 128 + N for
    signal N, and BROKEN_PIPE if the program that reads the output has ended.
    Signals wait, except in `interruptible` blocks. A warning also becomes one line. Any other
    error is a bug and keeps its traceback. Each process of torchrun prints its own error, because
    torchrun stops the other processes as soon as one has ended.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed before Python started
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors != "backslashreplace":
        sys.stdout.reconfigure(errors="backslashreplace")  # escape characters it cannot encode
    logging.raiseExceptions = False  # no traceback if the disk of a log file is full
    with warnings.catch_warnings(), stop_on_signals() as stop, signals_held():
        warnings.showwarning = lambda message, *_: tell(f"note: {message}", shared=True)
        try:
            yield
            sys.stdout.flush()
            if stop.asked is not None:  # a late signal, or its exception was dropped
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
            known = [str(part) for part in (error.filename, error.strerror) if part is not None]
            fail(": ".join(known) or str(error))
        except (ImportError, MemoryError, RuntimeError, SystemError) as error:
            if "failed to map segment" in str(error):
                fail("there is not enough memory to load PyTorch")
            from styletransfer.system.devices import is_out_of_memory

            if not is_out_of_memory(error):
                raise
            fail("there is not enough memory; choose a smaller size")
        finally:
            atexit.unregister(end_at_once)
            atexit.register(end_at_once)  # registered last, so called first


def fail(message: str, status: int = 1, *, shared: bool = False) -> NoReturn:
    """Print `message` on standard error, as `tell` does with `shared`, and exit."""
    tell(f"error: {message}", shared=shared)
    flush(sys.stdout)
    raise Ended(status, message)


def tell(message: str, *, shared: bool = False) -> None:
    """Print `message` as one line on standard error; do nothing if that fails.

    If `shared`, all processes of torchrun call this with the same message, and only the first
    process on a machine prints it.
    """
    with suppress(UserError):  # the environment's torchrun variables are invalid
        if shared and process_rank().local_rank:
            return
    with suppress(OSError):
        sys.stderr.write(f"{' '.join(message.split())}\n")  # one write keeps the line whole
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


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line `argv`, without the program's name; the default is sys.argv."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    with one_line_errors():
        if not arguments or arguments[0] in ("-h", "--help"):
            lines = (f"  {name:<14}{known.summary}" for name, known in COMMANDS.items())
            print(OVERVIEW.format(commands="\n".join(lines)), end="")
        elif arguments[0] == "--version":
            print(f"styletransfer {__version__}")
        elif arguments[0] not in COMMANDS:
            raise UserError(_unknown(arguments[0]))
        else:
            script(arguments[0])(arguments[1:])


def script(name: str) -> Callable[[Sequence[str] | None], None]:
    """Return a function that takes `argv` and runs a command; it imports the command's module.

    Hydra runs the commands that have a config file. Every other command has a `main(argv)` that
    parses its arguments and returns the exit status.
    """
    if COMMANDS[name].schema is not None:
        from styletransfer.cli.hydrated import hydrated

        return hydrated(name)

    def run(argv: Sequence[str] | None = None) -> None:
        with one_line_errors():
            check_process(name)
            own_main = main_of(name)
            with interruptible():
                status = own_main(argv)
            sys.exit(status)

    return run


def check_process(name: str) -> None:
    """Raise UserError if the current folder is gone, or torchrun runs a one-process command."""
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise UserError("the folder this was started in is gone; go to another") from error
    if process_rank().world_size > 1 and not command(name).shared:
        raise UserError(f"{name} works in one process; start it without torchrun")


def main_of(name: str) -> Callable[..., int | None]:
    """Import the module of a command or tool; return its `main`."""
    found: Callable[..., int | None] = importlib.import_module(module(name)).main
    return found


def _unknown(name: str) -> str:
    if "=" in name:
        return f"{name!r} is no command; name one first: styletransfer train {name}"
    near = difflib.get_close_matches(name, COMMANDS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(COMMANDS)}"
    return f"unknown command {name!r}; {hint}"
