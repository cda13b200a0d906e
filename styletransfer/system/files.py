"""Writes files atomically, hashes files, checks output paths, and locks folders."""

import hashlib
import json
import logging
import os
import secrets
import shutil
import sys
import tempfile
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from styletransfer.errors import UserError
from styletransfer.system.signals import raise_waiting, signals_held

logger = logging.getLogger(__name__)

# Name of a folder's lock file, which is locked while a command writes into the folder.
LOCK = ".lock"
LONGEST_LINE = 2**20  # largest line in bytes of a .jsonl file; it may come from anybody


@contextmanager
def atomic(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary name beside `path`; rename it to `path` once the body has succeeded.

    Missing parent folders are created. If the body fails, the temporary file is removed and an
    existing file at `path` is unchanged. Signals wait until the end. (UserError if the body or the
    rename raises OSError, as on a full disk, or if `path` is a folder, a device or a pipe.)
    """
    with signals_held(), _replaceable(path) as target:
        temporary = temporary_for(target)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            yield temporary
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())  # some file systems report a full disk only here
            _replace(temporary, target)
            _sync_folder(target.parent)
        finally:
            with suppress(OSError):  # the file does not exist after a successful rename
                temporary.unlink()
    raise_waiting()


def _replace(temporary: Path, target: Path) -> None:
    """Rename `temporary` to `target`; on Windows, wait up to 2 s for a program that reads it."""
    for _ in range(20 if sys.platform == "win32" else 0):
        try:
            temporary.replace(target)
            return
        except PermissionError:
            time.sleep(0.1)
    temporary.replace(target)


def temporary_for(target: Path) -> Path:
    """Return a new temporary name beside `target`: . 16 hexadecimal digits .tmp."""
    return target.with_name(f".{_mark(target)}{secrets.token_hex(4)}.tmp")


def _mark(target: Path) -> str:
    """Return 8 hexadecimal digits, equal for names that some file system takes for one name."""
    name = unicodedata.normalize("NFC", target.name).casefold()
    return hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()[:8]


def remove_stale(folder: Path, mark: str | None = None) -> None:
    """Remove the temporary files of killed processes from `folder`; a warning names each.

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


def sha256(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file in hexadecimal (UserError if it cannot be read)."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; check the path") from error


def keep_lines(path: Path, wanted: Callable[[dict[str, Any]], bool]) -> None:
    """Keep the lines of a `.jsonl` file that are `wanted` (UserError if writing the file fails).

    `wanted` receives a parsed line. Incomplete lines, which a killed process leaves, are dropped,
    and so are lines that are longer than LONGEST_LINE.
    """
    with atomic(path) as temporary, temporary.open("wb") as kept, path.open("rb") as file:
        is_begun = False  # whether the beginning of the line was read before
        while line := file.readline(LONGEST_LINE):
            with suppress(ValueError, TypeError, KeyError, RecursionError):
                if line.endswith(b"\n") and not is_begun and wanted(json.loads(line)):
                    kept.write(line)
            is_begun = not line.endswith(b"\n")


def to_json(value: Any, indent: int | None = None) -> str:
    """Return plain values as JSON; non-finite numbers, which JSON lacks, become null."""
    finite = json.loads(json.dumps(value), parse_constant=lambda name: None)
    return json.dumps(finite, indent=indent)


def check_outputs(
    outputs: Iterable[str | os.PathLike[str]],
    inputs: Iterable[tuple[str, str | os.PathLike[str]]],
    filled: Iterable[Path] = (),
) -> None:
    """Check, before any work, that all `outputs` can be written and would replace no input.

    `inputs` are (key, path); an input may be missing. `filled` are folders in which a command
    writes or replaces any file. (UserError if an output and an input, or two outputs, lead to the
    same file, an input lies in a folder of `filled`, or `check_folder` refuses an output.)
    """
    read: dict[object, str] = {}
    folders = [(folder, os.path.realpath(folder)) for folder in filled]
    for key, path in inputs:
        read.setdefault(_identity(path), f"{key}={path}")
        for folder, full in folders:
            if Path(os.path.realpath(path)).is_relative_to(full):
                raise UserError(
                    f"files in {folder} would overwrite {key}={path}; move it elsewhere"
                )
    written: dict[str, list[str]] = {}  # path, case-folded and in NFC -> outputs
    for output in outputs:
        check_folder(output)
        if what := read.get(_identity(output)):
            raise UserError(f"{output} would overwrite {what}; choose another output")
        target = os.path.realpath(output)
        alike = written.setdefault(unicodedata.normalize("NFC", target).casefold(), [])
        if any(is_one_file(target, other) for other in alike):
            advice = "choose another output, or rename what they are made of"
            raise UserError(f"two results would become {output}; {advice}")
        alike.append(target)


def is_one_file(path: str, other: str) -> bool:
    """Tell whether two paths, which differ only in case or form of accents, lead to one file."""
    if path == other:
        return True
    shared = Path(os.path.commonpath([path, other]))
    name, twin = (Path(one).relative_to(shared).parts[0] for one in (path, other))
    folder = next(parent for parent in (shared, *shared.parents) if parent.is_dir())
    # The file system decides: a file is made, and looked up by the other name.
    with suppress(OSError), tempfile.TemporaryDirectory(prefix=".", dir=folder) as trial:
        Path(trial, name).touch()
        return Path(trial, twin).exists()
    return False


def check_folder(path: str | os.PathLike[str]) -> None:
    """Check that a file can be written at `path` later (UserError if not); leave no file there."""
    with _replaceable(path) as target:
        folder = next(parent for parent in target.parents if parent.exists())
        tempfile.TemporaryFile(dir=folder).close()


def _identity(path: str | os.PathLike[str]) -> object:
    """Return a value that is equal for all paths to one file, existing or not."""
    try:
        found = os.stat(path)
    except OSError:
        return os.path.realpath(path)
    except ValueError:  # no file has such a name
        return None
    return found.st_dev, found.st_ino


@contextmanager
def _replaceable(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield `path` with links resolved, so that a write replaces the file, not a link to it.

    Raise UserError if `path` is a folder, a device or a pipe, or for an OSError in the body.
    """
    target = Path(os.path.realpath(path))
    try:
        if target.is_dir():
            raise UserError(f"cannot write {path}: it is a folder; add a file name")
        if target.exists() and not target.is_file():
            raise UserError(f"cannot write {path}: it is a device or pipe; name a file")
        yield target
    except OSError as error:
        reason = f"{error.strerror or error}; choose a writable folder with space left"
        raise UserError(f"cannot write {path}: {reason}") from error


def _sync_folder(folder: Path) -> None:
    """Make a rename in `folder` survive a power failure, if the system allows it."""
    if sys.platform == "win32":
        return
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def locked(
    folder: Path,
    advice: str = "choose another folder with hydra.run.dir=FOLDER",
    holder: str = "run",
) -> Iterator[None]:
    """Hold the lock of an existing folder while the body runs.

    (UserError if another process has the lock; the message calls it a `holder`, and ends with
    `advice`.)
    """
    message = f"another {holder} is at work in {folder}; wait for it, or {advice}"
    with lock_held(folder / LOCK, message):
        yield


@contextmanager
def output_locked(path: str | os.PathLike[str]) -> Iterator[None]:
    """Hold the lock of a command's output, a file or a new folder, while the body makes it.

    Missing parent folders are made, and removed if they stay empty. Temporary files that a killed
    command has left beside the output are removed. (UserError if another command has the lock, or
    if the output's folder cannot be made.)
    """
    with _replaceable(path) as target:
        made = [folder for folder in target.parents if not folder.exists()]
        target.parent.mkdir(parents=True, exist_ok=True)
    message = f"another command is writing {path}; wait for it, or choose another output"
    mark = _mark(target)
    try:
        with lock_held(target.with_name(f".{mark}{LOCK}"), message):
            remove_stale(target.parent, mark)
            yield
    finally:
        for folder in made:
            with suppress(OSError):  # it holds the output
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
    """Tell whether the lock file `folder/name` is still held after waiting up to `patience` s."""
    if (folder / name).exists():  # a killed process leaves the file
        with suppress(OSError, NotImplementedError):
            try:
                FileLock(folder / name).acquire(timeout=patience).lock.release()
            except Timeout:
                return True
    return False


def new_folder(path: str) -> str:
    """Make the first of `path`, `path-2`, `path-3`, ... that does not exist; return its path."""
    claimed, number = path, 1
    while True:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        try:
            # If several processes make the same folder, only one of them succeeds.
            Path(claimed).mkdir()
            return claimed
        except FileNotFoundError:  # another run has failed and removed the empty parent folders
            continue
        except FileExistsError:
            number += 1
            claimed = f"{path}-{number}"
