"""Locks: one command at a time writes into a folder or makes an output."""

import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from styletransfer.errors import UserError
from styletransfer.system.files import mark_of, replaceable

logger = logging.getLogger(__name__)

# Name of a folder's lock file, which is locked while a command writes into the folder.
LOCK = ".lock"


def locked(folder: Path) -> AbstractContextManager[None]:
    """Return a context that holds a folder's lock (UserError if another command holds it)."""
    advice = "wait for it, or choose another folder with hydra.run.dir=FOLDER"
    return lock_held(folder / LOCK, f"another run is at work in {folder}; {advice}")


@contextmanager
def output_locked(path: str | os.PathLike[str]) -> Iterator[None]:
    """Hold the lock of a command's output, a file or a new folder, while the body makes it.

    Missing parent folders are made, and removed if they stay empty. Temporary files that a killed
    command has left beside the output are removed. (UserError if another command has the lock, or
    if the output's folder cannot be made.)
    """
    with replaceable(path) as target:
        made = [folder for folder in target.parents if not folder.exists()]
        target.parent.mkdir(parents=True, exist_ok=True)
    message = f"another command is writing {path}; wait for it, or choose another output"
    mark = mark_of(target)
    try:
        with lock_held(target.with_name(f".{mark}{LOCK}"), message):
            remove_stale(target.parent, mark)
            yield
    finally:
        for folder in made:
            with suppress(OSError):  # a folder that holds the output is not removed
                folder.rmdir()


@contextmanager
def lock_held(path: Path, message: str) -> Iterator[None]:
    """Lock the file `path` while the body runs (UserError `message` if it is locked already).

    The system frees the lock of a killed process. On a file system without such locks, as some
    network file systems are, the body runs without a lock.
    """
    lock = FileLock(path, thread_local=False)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise UserError(message) from None
    except (OSError, NotImplementedError):
        yield
        return
    try:
        yield
    finally:
        with suppress(OSError):  # Windows cannot remove an open file; there, release() removes it
            path.unlink()
        lock.release()


def is_locked(folder: Path, name: str = LOCK, patience: float = 0.0) -> bool:
    """Tell whether a process still holds the lock `folder/name` after up to `patience` seconds."""
    if (folder / name).exists():  # the file alone proves nothing: a killed process leaves it
        with suppress(OSError, NotImplementedError):
            try:
                FileLock(folder / name).acquire(timeout=patience).lock.release()
            except Timeout:
                return True
    return False


def remove_stale(folder: Path, mark: str | None = None) -> None:
    """Remove the temporary files of killed processes from `folder`; log a warning for each file.

    No other process may be writing in the folder, except for outputs that it has locked by
    `output_locked`. With the `mark` of a file, which this process has locked, only the temporary
    files of that file are removed.
    """
    digits = "[0-9a-f]" * 8
    for path in folder.glob(f".{mark or digits}{digits}.tmp"):
        if mark or not is_locked(folder, f".{path.name[1:9]}{LOCK}"):
            with suppress(OSError):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
                logger.warning("removed %s, which a killed command has left", path)
