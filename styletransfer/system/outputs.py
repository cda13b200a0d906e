"""Checks, before any work, that what a command will write can be written and replaces no input."""

import os
import tempfile
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from styletransfer.errors import UserError
from styletransfer.system.files import replaceable


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
    written: dict[str, list[str]] = {}  # path in lower case and Unicode's NFC -> outputs
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
    """Tell whether two paths, which differ only in case or Unicode form, lead to the same file."""
    if path == other:
        return True
    shared = Path(os.path.commonpath([path, other]))
    name, twin = (Path(one).relative_to(shared).parts[0] for one in (path, other))
    folder = next(parent for parent in (shared, *shared.parents) if parent.is_dir())
    # Only the file system knows this, so a file is made with one name and looked for by the other.
    with suppress(OSError), tempfile.TemporaryDirectory(prefix=".", dir=folder) as trial:
        Path(trial, name).touch()
        return Path(trial, twin).exists()
    return False


def check_folder(path: str | os.PathLike[str]) -> None:
    """Check that a file can be written at `path` later (UserError if not); leave no file there."""
    with replaceable(path) as target:
        folder = next(parent for parent in target.parents if parent.exists())
        tempfile.TemporaryFile(dir=folder).close()


def _identity(path: str | os.PathLike[str]) -> object:
    """Return a value that is equal for all paths to one file, existing or not."""
    try:
        found = os.stat(path)
    except OSError:
        return os.path.realpath(path)
    except ValueError:  # no file can have this name, for example with a byte 0
        return None
    return found.st_dev, found.st_ino
