"""Writes files atomically, and hashes files."""

import hashlib
import json
import os
import secrets
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from styletransfer.errors import UserError
from styletransfer.system.signals import raise_waiting, signals_held

# Longest line in bytes of a .jsonl file that is read, so that no stranger's file fills the memory.
LONGEST_LINE = 2**20


@contextmanager
def atomic(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary name beside `path`; rename it to `path` once the body has succeeded.

    Missing parent folders are created. If the body fails, the temporary file is removed and an
    existing file at `path` is unchanged. Signals wait until the end. (UserError if the body or the
    rename raises OSError, as on a full disk, or if `path` is a folder, a device or a pipe.)
    """
    with signals_held(), replaceable(path) as target:
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


def write_atomic(path: str | os.PathLike[str], content: bytes) -> None:
    """Write `content` to the file `path` by `atomic`."""
    with atomic(path) as temporary:
        temporary.write_bytes(content)


def _replace(temporary: Path, target: Path) -> None:
    """Rename `temporary` to `target`; on Windows, wait up to 2 s while a program reads `target`."""
    for _ in range(20 if sys.platform == "win32" else 0):
        try:
            temporary.replace(target)
            return
        except PermissionError:
            time.sleep(0.1)
    temporary.replace(target)


def temporary_for(target: Path) -> Path:
    """Return a new temporary path beside `target`: a dot, 16 hexadecimal digits, and .tmp."""
    return target.with_name(f".{mark_of(target)}{secrets.token_hex(4)}.tmp")


def mark_of(target: Path) -> str:
    """Return 8 hexadecimal digits of a name, which do not depend on its case and Unicode form."""
    name = unicodedata.normalize("NFC", target.name).casefold()
    return hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()[:8]


def sha256(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file in hexadecimal (UserError if it cannot be read)."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; check the path") from error


def keep_lines(path: Path, wanted: Callable[[dict[str, Any]], bool]) -> None:
    """Drop the lines of a `.jsonl` file for which `wanted` is false.

    `wanted` receives a parsed line. Incomplete lines, which a killed process leaves, are dropped as
    well, and so are lines that are longer than LONGEST_LINE. (UserError if writing the file fails.)
    """
    with atomic(path) as temporary, temporary.open("wb") as kept, path.open("rb") as file:
        is_begun = False  # whether `line` continues a line that is longer than LONGEST_LINE
        while line := file.readline(LONGEST_LINE):
            with suppress(ValueError, TypeError, KeyError, RecursionError):
                if line.endswith(b"\n") and not is_begun and wanted(json.loads(line)):
                    kept.write(line)
            is_begun = not line.endswith(b"\n")


def to_json(value: Any) -> str:
    """Return plain values as JSON; non-finite numbers, which JSON lacks, become null."""
    return json.dumps(json.loads(json.dumps(value), parse_constant=lambda name: None))


@contextmanager
def replaceable(path: str | os.PathLike[str]) -> Iterator[Path]:
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


def new_folder(path: str) -> str:
    """Make the first of `path`, `path-2`, `path-3`, ... that does not exist; return its path."""
    claimed, number = path, 1
    while True:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        try:
            # If several processes make the same folder, only one of them succeeds.
            Path(claimed).mkdir()
            return claimed
        except FileNotFoundError:  # another run failed, and removed the parent, which was empty
            continue
        except FileExistsError:
            number += 1
            claimed = f"{path}-{number}"
