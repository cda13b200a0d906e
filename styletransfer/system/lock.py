"""One run to a folder, by a lock of the operating system's: it ends with the process."""

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
def locked(folder: Path) -> Iterator[None]:
    """Keep other runs out of `folder`, which exists, but on Windows (UserError: one is there)."""
    if sys.platform == "win32":
        yield
        return
    path = folder / NAME
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        if not _lock(file):
            os.close(file)
            raise UserError(
                f"another run is at work in {folder}; wait for it, or choose another folder "
                "with hydra.run.dir=FOLDER"
            )
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file), os.stat(path)):
                break
        os.close(file)  # its last owner has removed the file meanwhile
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()
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
