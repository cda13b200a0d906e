"""One writer to a folder or a file, by a lock of the operating system's: it ends with it."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from styletransfer.errors import UserError

if sys.platform != "win32":
    import fcntl

NAME = ".lock"


@contextmanager
def locked(
    folder: Path, advice: str = "choose another folder with hydra.run.dir=FOLDER"
) -> Iterator[None]:
    """Keep every other run out of `folder`, which exists; Windows does without.

    Raises:
        UserError: another run has the folder; `advice` says what else can be done.
    """
    path = folder / NAME
    with locked_file(path, f"another run is at work in {folder}; wait for it, or {advice}"):
        try:
            yield
        finally:
            if sys.platform != "win32":
                with suppress(OSError):
                    path.unlink()


@contextmanager
def locked_file(path: Path, refusal: str) -> Iterator[None]:
    """Keep a file, made if it is not there, from everybody else who locks it, until the end.

    It may be renamed or removed meanwhile. Windows does without.

    Raises:
        UserError: it is locked, which `refusal` says; OSError: it cannot be made, or is a link.
    """
    if sys.platform == "win32":
        yield
        return
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        if not _lock(file):
            os.close(file)
            raise UserError(refusal)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file), os.stat(path)):
                break
        os.close(file)  # its last owner has removed or renamed it meanwhile
    try:
        yield
    finally:
        os.close(file)


def is_locked(folder: Path) -> bool:
    """Tell whether a run is at work in `folder`."""
    try:
        file = os.open(folder / NAME, os.O_RDWR)
    except OSError:
        return False
    try:
        return not _lock(file)
    finally:
        os.close(file)


def _lock(file: int) -> bool:
    """Lock a file until it is closed, where there are locks; False if somebody else has."""
    if sys.platform != "win32":
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True
    return True
