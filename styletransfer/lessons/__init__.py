"""Lessons: small Functions, checks of their backward, and a reader of autograd graphs.

This file parses the command lines of the lessons.
"""

import argparse
from typing import NoReturn


class Parser(argparse.ArgumentParser):
    """A parser that reports an error in one line and exits with status 1, as other commands do."""

    def error(self, message: str) -> NoReturn:
        """Exit without the usage text that argparse would print first."""
        self.exit(1, f"error: {' '.join(message.split())}\n")


def seed(text: str) -> int:
    """Return `text` as a seed from 0 to 2^63 - 1 (ArgumentTypeError: it is no such number)."""
    if not text.isdecimal() or int(text) >= 2**63:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number from 0 to 2^63 - 1")
    return int(text)
