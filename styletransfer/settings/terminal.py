"""The width of the terminal, for help and progress; this module imports neither Hydra nor torch."""

import shutil
import textwrap

# WIDTH: largest width of a line of help in characters. A terminal narrower than NARROW has no room
# for two columns of help, or for a progress bar beside its text.
WIDTH, NARROW = 100, 72


def width() -> int:
    """Return the terminal's width in characters, at most WIDTH; without a terminal, WIDTH."""
    return min(WIDTH, max(20, shutil.get_terminal_size((WIDTH, 0)).columns))


def wrapped(text: str, indent: int = 0) -> list[str]:
    """Break a text into lines as wide as the terminal; indent all lines except the first."""
    return textwrap.wrap(text, width(), subsequent_indent=" " * indent)
