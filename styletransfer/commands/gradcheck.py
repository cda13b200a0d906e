"""Check every hand-written backward against measured slopes: `scripts/gradcheck.py`.

Exits with status 1 if any check fails.
"""

import argparse
from collections.abc import Sequence
from typing import NoReturn

from rich.console import Console
from rich.table import Column, Table

from styletransfer.lessons.checks import STEP, Case, Verdict, cases, check, check_in_float32

SUMMARY = "Check every hand-written backward, first and second derivatives."


class Parser(argparse.ArgumentParser):
    """A parser that reports an error in one line and exits with status 1, as other commands do."""

    def error(self, message: str) -> NoReturn:
        """Exit without the usage text that argparse would print first."""
        self.exit(1, f"error: {' '.join(message.split())}\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Print both tables and return the exit status; `argv` defaults to the command line."""
    Parser(prog="gradcheck", description=SUMMARY).parse_args(argv)
    verdicts = [(case, check(case)) for case in cases()]
    console = Console()
    console.print(_float64_table(verdicts))
    console.print(_float32_table([case for case, _ in verdicts]))
    console.print(
        "Why float32 fails: gradcheck divides f(x + h) - f(x - h) by 2h, with h = "
        f"{STEP:g}. Numbers near 1 lie 1.2e-07 apart in float32, so the difference keeps about "
        "one digit. The last column shows that the backward itself is right in float32 too."
    )
    failed = sum(bool(verdict.complaint) for _, verdict in verdicts)
    console.print(f"{len(verdicts) - failed} of {len(verdicts)} checks passed.")
    return 1 if failed else 0


def _float64_table(verdicts: Sequence[tuple[Case, Verdict]]) -> Table:
    table = Table(
        Column("function", no_wrap=True),
        "shapes",
        Column("deviation", justify="right"),
        "first and second derivative",
        title="float64: largest deviation of backward from the measured slope",
        caption="relative to the Jacobian's largest entry",
    )
    for case, verdict in verdicts:
        words = f"[red]FAILED: {verdict.complaint}" if verdict.complaint else "[green]passed"
        table.add_row(case.name, case.shapes, f"{verdict.deviation:.1e}", words)
    return table


def _float32_table(chosen: Sequence[Case]) -> Table:
    named = "backward against difference quotient", "float32 backward against float64's"
    columns = (Column(name, justify="right") for name in named)
    table = Table("function", "gradcheck", *columns, title="The same check in float32")
    first = {case.name: case for case in reversed(chosen)}
    for name in dict.fromkeys(case.name for case in chosen):
        passed, *deviations = check_in_float32(first[name])
        table.add_row(name, "passes" if passed else "fails", *(f"{x:.1e}" for x in deviations))
    return table
