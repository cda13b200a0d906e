"""To learn from: small Functions, how they are checked, and how to read an autograd graph.

Here: how the command lines of the lessons are read.
"""

import argparse
from typing import NoReturn


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line and leaves with status 1, as the other commands do."""

    def error(self, message: str) -> NoReturn:
        """Leave without the usage that argparse would print first."""
        self.exit(1, f"error: {' '.join(message.split())}\n")


def seed(text: str) -> int:
    """Return a seed that torch's generators take, 0 to 2^63 - 1 (ArgumentTypeError: it is none)."""
    if not text.isdecimal() or int(text) >= 2**63:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number from 0 to 2^63 - 1")
    return int(text)
