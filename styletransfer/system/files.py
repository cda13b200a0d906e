"""Writing files so that nothing half-written is ever left behind, and by one writer at a time."""

import hashlib
import json
import os
import secrets
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from styletransfer.errors import UserError
from styletransfer.system.signals import raise_waiting, signals_held

if sys.platform != "win32":
    import fcntl

NAME = ".lock"


@contextmanager
def atomic(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary name beside `path`; rename it to `path` once the body has succeeded.

    Missing parent folders are created. If the body fails, the temporary file is removed and a file
    that was at `path` before is untouched. Signals wait until then. (UserError: an OSError in the
    body or in the rename, such as a full disk; `path` is a folder, a device or a pipe.)
    """
    with signals_held(), _replaceable(path) as target:
        temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            yield temporary
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())  # some file systems report a full disk only here
            temporary.replace(target)
            _sync_folder(target.parent)
        finally:
            with suppress(OSError):  # after a successful rename there is nothing left to remove
                temporary.unlink()
    raise_waiting()


def remove_stale(folder: Path) -> None:
    """Remove what writers that were killed have left in `folder`; nobody may be writing there."""
    for path in folder.glob("." + "[0-9a-f]" * 16 + ".tmp"):
        with suppress(OSError):
            path.unlink()


def sha256(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file in hexadecimal (UserError: it cannot be read)."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; check the path") from error


def keep_lines(path: Path, wanted: Callable[[dict[str, Any]], bool]) -> None:
    """Keep the lines of a `.jsonl` file that are `wanted` (UserError: it cannot be written).

    A line that no writer of ours has finished, as a killed one leaves it, is dropped.
    """
    lines = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True):
        with suppress(ValueError, TypeError, KeyError, RecursionError):
            if line.endswith("\n") and wanted(json.loads(line)):
                lines.append(line)
    with atomic(path) as temporary:
        temporary.write_text("".join(lines), encoding="utf-8")


def to_json(value: Any, indent: int | None = None) -> str:
    """Return JSON of plain values; what is not finite, for which JSON has no word, becomes null."""
    finite = json.loads(json.dumps(value), parse_constant=lambda name: None)
    return json.dumps(finite, indent=indent)


def check_outputs(
    outputs: Iterable[str | os.PathLike[str]],
    inputs: Iterable[tuple[str, str | os.PathLike[str]]],
) -> None:
    """Refuse before any work what could not be written after it, or would replace what is read.

    Every command asks this of all that it is going to write. Files are told apart by what they
    are, links followed, not by their names.

    Inputs have their keys; those that are missing do not matter. (UserError: an output is an input
    or another output, or see `check_folder`.)
    """
    read: dict[object, str] = {}
    for key, path in inputs:
        read.setdefault(_identity(path), f"{key}={path}")
    written = set()
    for output in outputs:
        check_folder(output)
        if what := read.get(_identity(output)):
            raise UserError(f"{output} would overwrite {what}; choose another output")
        target = os.path.realpath(output)
        if target in written:
            advice = "choose another output, or rename what they are made of"
            raise UserError(f"two results would become {output}; {advice}")
        written.add(target)


def check_folder(path: str | os.PathLike[str]) -> None:
    """Fail now if a file at `path` could not be written later. Nothing is created.

    UserError if it is a folder, a device or a pipe, or its closest parent takes no new file.
    """
    with _replaceable(path) as target:
        folder = next(parent for parent in target.parents if parent.exists())
        tempfile.TemporaryFile(dir=folder).close()


def _identity(path: str | os.PathLike[str]) -> object:
    """Return what two names of one file have in common, whether it is there or not."""
    try:
        found = os.stat(path)
    except OSError:
        return os.path.realpath(path)
    except ValueError:  # no file has such a name
        return None
    return found.st_dev, found.st_ino


@contextmanager
def _replaceable(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the file that `path` leads to; UserError if it is none, or for an OSError in the body.

    A link is followed, so that it keeps pointing at the file instead of being replaced by it.
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
    """Let a rename outlive a loss of power, where folders can be synchronised."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def locked(
    folder: Path, advice: str = "choose another folder with hydra.run.dir=FOLDER"
) -> Iterator[None]:
    """Keep every other run out of `folder`, which exists (UserError, with `advice`: one has it)."""
    path = folder / NAME
    with locked_file(path, f"another run is at work in {folder}; wait for it, or {advice}"):
        try:
            yield
        finally:
            with suppress(OSError):
                path.unlink()


@contextmanager
def locked_file(path: Path, refusal: str) -> Iterator[None]:
    """Keep a file, made if it is not there, from everybody else who locks it, until the end.

    It may be renamed or removed meanwhile. Windows does without. (UserError: it is locked, which
    `refusal` says; OSError: it cannot be made, or is a link.)
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
    with suppress(OSError), open(folder / NAME, "rb+", buffering=0) as file:
        return not _lock(file.fileno())
    return False


def _lock(file: int) -> bool:
    """Lock a file until it is closed, where there are locks; False if somebody else has."""
    if sys.platform != "win32":
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return not isinstance(error, BlockingIOError)
    return True
