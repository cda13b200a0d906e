"""Locks the folder of a command's result, and checks that it holds no other result."""

import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from styletransfer.errors import UserError
from styletransfer.runs.record import ERROR, HYDRA, RECORD
from styletransfer.system.files import write_atomic
from styletransfer.system.locks import LOCK, locked, remove_stale

logger = logging.getLogger(__name__)

# File name -> text of the files in which Hydra records the current command line; see `made_by`.
_FILES: ContextVar[Mapping[str, str]] = ContextVar("_FILES")
# Endings of the names of files that a command may leave if it fails before it writes a result.
LEFTOVERS = (".log", ".tmp", ERROR, LOCK, "multirun.yaml")


@contextmanager
def made_by(files: Mapping[str, str]) -> Iterator[None]:
    """Let `claimed` also write Hydra's `files` (file name -> text) during the `with` block."""
    token = _FILES.set(files)
    try:
        yield
    finally:
        _FILES.reset(token)


@contextmanager
def claimed(folder: Path, written: Iterable[str], *, goes_on: bool = False) -> Iterator[None]:
    """Lock the folder of a result while the body runs, and write the command line into `.hydra`.

    `written` are the names of the files and folders that the command writes. If `goes_on`, the
    command continues its own result in the folder: `.hydra` is not written again. (UserError if
    another command has the lock, or `check_free` or `check_links` refuses the folder.)
    """
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        if goes_on:
            check_links(folder, written)
        else:
            check_free(folder, written)
            keep_command_line(folder)
        remove_stale(folder)
        yield


def check_links(folder: Path, written: Iterable[str]) -> None:
    """Raise UserError if a file named in `written` is a link that leads out of the folder.

    The folder may come from somebody else. A write through its link would change a file of this
    user.
    """
    for path in (folder / name for name in written):
        if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
            raise UserError(f"{path} is a link to {os.path.realpath(path)}; remove the link")


def check_free(folder: Path, written: Iterable[str]) -> None:
    """Raise UserError if a folder holds a file named in `written`, or another command's result."""
    held = [name for name in written if os.path.lexists(folder / name)]
    kept = Path(HYDRA).parts[0]
    if not held and (folder / kept).exists():  # a command wrote `.hydra`, and its result
        names = {path.name for path in folder.iterdir()} - {kept}
        held = sorted(name for name in names if not name.endswith(LEFTOVERS))
    if held:
        way = ", or add resume=auto to go on with its run" if RECORD in held else ""
        raise UserError(
            f"{folder} holds {held[0]} already; choose another folder with hydra.run.dir=FOLDER "
            f"(hydra.sweep.dir=FOLDER for a sweep){way}"
        )


def keep_command_line(folder: Path) -> None:
    """Write the command line into `folder/.hydra`; if that fails, log a warning."""
    try:
        for name, text in _FILES.get({}).items():
            write_atomic((folder / HYDRA).with_name(name), text.encode())
    except UserError as error:
        logger.warning("%s; going on without", error)
