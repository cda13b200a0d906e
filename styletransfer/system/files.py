"""Writing files so that nothing half-written is ever left behind."""

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from styletransfer.errors import UserError


@contextmanager
def atomic(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary name beside `path`; rename it to `path` once the body has succeeded.

    Missing parent folders are created. If the body fails, the temporary file is removed and a file
    that was at `path` before is untouched.

    Raises:
        UserError: for an OSError in the body or in the rename, such as a full disk.
    """
    # A link is followed, so that it keeps pointing at the file instead of being replaced by it.
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())  # some file systems report a full disk only here
        temporary.replace(target)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        with suppress(OSError):  # after a successful rename there is nothing left to remove
            temporary.unlink()


def check_folder(path: str | os.PathLike[str]) -> None:
    """Fail now if a file at `path` could not be written later. Nothing is created.

    Raises:
        UserError: if `path` is a folder, or its closest existing parent folder takes no new file.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise UserError(f"cannot write {path}: it is a folder; add a file name")
    folder = next(parent for parent in target.parents if parent.exists())
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: str | os.PathLike[str], error: OSError) -> UserError:
    reason = error.strerror or str(error)
    return UserError(f"cannot write {path}: {reason}; choose a writable folder with space left")
