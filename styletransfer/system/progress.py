"""Progress bars on standard error: drawn in a terminal, and at most ten lines in a log."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from tqdm.auto import tqdm
from tqdm.std import tqdm as plain

from styletransfer.settings.terminal import NARROW, width


def progress_bar(*items: Any, disable: bool = False, **look: Any) -> Any:
    """Return a tqdm bar; `items` and `look` are tqdm's arguments.

    Nothing is shown if standard error is closed or TQDM_DISABLE is in the environment. If standard
    error is a file or a pipe, a line is written for each 10 % of `total`.
    """
    stream = sys.stderr
    off = disable or stream is None or "TQDM_DISABLE" in os.environ
    # A notebook can draw bars, although it is no terminal. Its standard error is no TextIOWrapper,
    # while that of a log file or a pipe is one.
    is_log = isinstance(stream, io.TextIOWrapper) and not stream.isatty()
    kind: Any = _Lines if is_log and not off else tqdm
    if not is_log and width() < NARROW:
        look["bar_format"] = "{n_fmt}/{total_fmt}{postfix} {desc}"  # if narrow, tqdm cuts the end
    return kind(*items, file=_Forgiving(stream), dynamic_ncols=True, disable=off, **look)


class _Lines(plain):  # type: ignore[type-arg]
    """_Lines is a bar that writes a line for each 10 % of its total after its text has been set."""

    told = 0  # tenths of the total for which a line was written or is due
    is_due = False

    def __iter__(self) -> Iterator[Any]:
        with self:
            for item in self.iterable:
                yield item
                self.update()

    def update(self, n: float | None = 1) -> bool:
        """Advance by n; return whether a line is due."""
        self.display()
        self.n += n or 0
        tenths = int(10 * self.n / self.total) if self.total else 0
        self.is_due = tenths > self.told
        self.told = max(self.told, tenths)
        return self.is_due

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        """Write a line if one is due."""
        if self.is_due:
            self.is_due = False
            line = "{desc} {n_fmt}/{total_fmt} {unit}s{postfix}"
            known = {**self.format_dict, "bar_format": line}
            took = plain.format_interval(known["elapsed"])
            self.fp.write(f"{plain.format_meter(**known).strip()}, {took}\n")

    def close(self) -> None:
        """Write a line if one is due, and end the bar."""
        self.display()
        self.disable = True
        self._decr_instances(self)  # type: ignore[attr-defined]


class _Forgiving:
    """_Forgiving ignores errors in writing; after such an error, tqdm would never free its lock."""

    def __init__(self, file: Any) -> None:
        self.file = file

    def write(self, text: str) -> None:
        with suppress(OSError, ValueError):
            self.file.write(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self.file.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)
