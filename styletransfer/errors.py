"""The exceptions that a person is meant to read, and what they advise."""

from collections.abc import Iterator
from contextlib import contextmanager

# As pip knows this package, which is imported as `styletransfer`.
DISTRIBUTION = "styletransfer-torch"


def pip_install(extra: str) -> str:
    """Return the command that brings what an extra needs, to a checkout as to a wheel."""
    return f'pip install "{DISTRIBUTION}[{extra}]"'  # quotes that any shell takes


class UserError(Exception):
    """Bad input: the message is one line that says what is wrong and what to do about it.

    Scripts print it without a traceback and exit with status 1. Of the processes of a job that
    torchrun has started on one machine, the first one prints it for all. The key is that of the
    settings that are wrong, if it is just one.
    """

    def __init__(self, message: str, key: str | None = None) -> None:
        super().__init__(message)
        self.key = key


@contextmanager
def about(key: str) -> Iterator[None]:
    """Let errors within carry this key, unless they have one."""
    try:
        yield
    except UserError as error:
        error.key = error.key or key
        raise


class LostProcessError(UserError):
    """Another process of the job has ended; each that is left says so, whichever that was."""
