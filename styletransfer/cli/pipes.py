"""Lets a command read a picture from standard input and write one to standard output."""

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, TextIO, cast

from styletransfer.errors import UserError
from styletransfer.settings.schemas import keys


@contextmanager
def piped(words: Sequence[str], schema: type[Any]) -> Iterator[list[str]]:
    """Yield the words of a command line, with a temporary file's path for each `-` in KEY=-.

    This is done for the keys of `schema` that are marked `piped` (see `settings.keys`).
    The file of an input key gets the bytes of standard input. The file of `output=-` is a PNG. Its
    bytes go to standard output at the end, also after an error if there is a picture. With
    `output=-`, what the command prints goes to standard error. (UserError if standard input is
    needed, but is closed or a terminal.)
    """
    marks = {key: field.metadata for key, field in keys(schema) if field.metadata.get("piped")}
    named = [word[:-2] for word in words if word[-2:] == "=-" and word[:-2] in marks]
    if not named:
        yield [*words]
        return
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="styletransfer-"))
        files = {f"{key}=-": Path(folder, "standard input") for key in named}
        for key in named:
            if marks[key]["written"]:
                files[f"{key}=-"] = made = Path(folder, "pastiche.png")
                made.touch()  # a command would make a folder of this name if no file had it
                stack.callback(_write, made, sys.stdout)
                stack.enter_context(redirect_stdout(cast(TextIO, _Words(str(made)))))
            else:
                _read(key, files[f"{key}=-"])
        yield [f"{word[:-1]}{files[word]}" if word in files else word for word in words]


class _Words:
    """_Words writes a text to standard error, with - in place of the temporary file's path."""

    def __init__(self, path: str) -> None:
        self.path = path

    def write(self, text: str) -> int:
        return sys.stderr.write(text.replace(self.path, "-"))

    def flush(self) -> None:
        sys.stderr.flush()


def _read(key: str, file: Path) -> None:
    """Copy standard input to a file (UserError if there is no input, or no room for the file)."""
    if sys.stdin is None or sys.stdin.isatty():
        raise UserError(f"{key}=- reads a picture from standard input; add < PICTURE")
    try:
        with file.open("wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
    except OSError as error:
        raise UserError(f"cannot copy {key}=- to {file}: {error.strerror}") from error


def _write(file: Path, stdout: Any) -> None:
    """Write the bytes of a file to standard output (UserError if standard output is full)."""
    try:
        stdout.buffer.write(file.read_bytes())
        stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = f"{error.strerror}; name a file in place of -"
        raise UserError(f"cannot write the picture to standard output: {reason}") from error
