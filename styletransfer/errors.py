"""`UserError`, an exception whose message is written for users, and functions that raise it."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

# Name of this package for pip; the name to import is `styletransfer`.
DISTRIBUTION = "styletransfer-torch"


def pip_install(extra: str) -> str:
    """Return the shell command that installs this package with an extra, such as "video"."""
    return f'pip install "{DISTRIBUTION}[{extra}]"'  # every shell accepts double quotes


class UserError(Exception):
    """Bad input: the message is one line that says what is wrong and what to do about it.

    Scripts print the message without a traceback and exit with status 1. If torchrun has started
    several processes, each process prints its own error. `key` is the wrong setting, or None if no
    single setting is wrong.
    """

    def __init__(self, message: str, key: str | None = None) -> None:
        super().__init__(message)
        self.key = key


def imported(name: str, problem: str, extra: str) -> Any:
    """Return a module (UserError `problem`, with advice to install the extra, if it is missing)."""
    try:
        return import_module(name)
    except ImportError as error:
        raise UserError(f"{problem} run: {pip_install(extra)}") from error


@contextmanager
def about(key: str) -> Iterator[None]:
    """Set `key` on a UserError that is raised without a key in the `with` block."""
    try:
        yield
    except UserError as error:
        error.key = error.key or key
        raise
