"""One run to a folder."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from styletransfer.errors import UserError

NAME = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep every other run out of `folder`, which exists.

    The operating system holds the lock, so that it ends with the process, however that ends. A
    file system without locks is used without one.

    Raises:
        UserError: another run has the folder.
    """
    if sys.platform == "win32":
        yield
        return
    path = folder / NAME
    file = _open_locked(path)
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()
        os.close(file)


def _open_locked(path: Path) -> int:
    """Return a descriptor that holds the lock."""
    import fcntl

    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(file), os.stat(path)):
                return file
        except BlockingIOError as error:
            os.close(file)
            raise UserError(
                f"another run is at work in {path.parent}; wait for it, or choose another folder "
                "with hydra.run.dir=FOLDER"
            ) from error
        except FileNotFoundError:
            pass
        except OSError:
            return file  # no locks here
        os.close(file)  # the last owner has removed the file meanwhile


def is_locked(folder: Path) -> bool:
    """Tell whether a run is at work in `folder`."""
    if sys.platform == "win32":
        return False
    import fcntl

    try:
        file = os.open(folder / NAME, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # no locks here
    finally:
        os.close(file)
    return False
