"""The folder of a result: one command's alone, which claims it before it writes anything there."""

import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from styletransfer.errors import UserError
from styletransfer.runs.record import ERROR, HYDRA, RECORD
from styletransfer.system.files import LOCK, atomic, locked, remove_stale

logger = logging.getLogger(__name__)

# Name -> text of the files of the command line that is at work, see `made_by`.
_FILES: ContextVar[Mapping[str, str]] = ContextVar("_FILES")
# Ends of the names that a command which has made nothing may have left in a folder.
LEFTOVERS = (".log", ".tmp", ERROR, LOCK, "multirun.yaml")


@contextmanager
def made_by(files: Mapping[str, str]) -> Iterator[None]:
    """Let `claimed` write Hydra's record of a command line, name -> text of a file, to `.hydra`."""
    token = _FILES.set(files)
    try:
        yield
    finally:
        _FILES.reset(token)


@contextmanager
def claimed(folder: Path, written: Iterable[str], *, goes_on: bool = False) -> Iterator[None]:
    """Hold the folder of a result while the body runs, and write the command line into `.hydra`.

    `written` are the names of what the command writes there. A command that `goes_on` with its own
    result has checked its settings, and leaves `.hydra` as it is. (UserError: another command is
    at work there, or the folder holds another result or a file that would be replaced.)
    """
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        if not goes_on:
            check_free(folder, written)
            keep_command_line(folder)
        remove_stale(folder)
        yield


def check_free(folder: Path, written: Iterable[str]) -> None:
    """Check that a folder holds no result, and nothing called as `written` (UserError: it does)."""
    held = [name for name in written if os.path.lexists(folder / name)]
    kept = Path(HYDRA).parts[0]
    if not held and (folder / kept).exists():  # of another command; beside it lies its result
        names = {path.name for path in folder.iterdir()} - {kept}
        held = sorted(name for name in names if not name.endswith(LEFTOVERS))
    if held:
        way = ", or add resume=auto to go on with its run" if RECORD in held else ""
        raise UserError(
            f"{folder} holds {held[0]} already; choose another folder with hydra.run.dir=FOLDER "
            f"(hydra.sweep.dir=FOLDER for a sweep){way}"
        )


def keep_command_line(folder: Path) -> None:
    """Write the command line into `folder/.hydra`; if that fails, only warn."""
    try:
        for name, text in _FILES.get({}).items():
            with atomic((folder / HYDRA).with_name(name)) as temporary:
                temporary.write_text(text, encoding="utf-8")
    except UserError as error:
        logger.warning("%s; going on without", error)
