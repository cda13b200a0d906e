"""Check every hand-written backward against measured slopes: `scripts/gradcheck.py`.

Exits with status 1 if any check fails.
"""

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Column, Table

from styletransfer.errors import UserError
from styletransfer.lessons.checks import cases, check

HELP = """\
styletransfer gradcheck
Check every hand-written backward, first and second derivatives, in float64.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Print a table and return the exit status; `argv` defaults to the command line."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments in (["-h"], ["--help"]):
        print(HELP, end="")
        return 0
    if arguments:
        raise UserError(f"gradcheck takes no arguments; leave {' '.join(arguments)} out")
    table = Table(
        Column("function", no_wrap=True),
        "shapes",
        Column("deviation", justify="right"),
        "first and second derivative",
        title="float64: largest deviation of backward from the measured slope",
        caption="relative to the Jacobian's largest entry",
    )
    verdicts = [(case, check(case)) for case in cases()]
    for case, verdict in verdicts:
        words = f"[red]FAILED: {verdict.complaint}" if verdict.complaint else "[green]passed"
        table.add_row(case.name, case.shapes, f"{verdict.deviation:.1e}", words)
    Console().print(table)
    failed = sum(bool(verdict.complaint) for _, verdict in verdicts)
    print(f"{len(verdicts) - failed} of {len(verdicts)} checks passed.")
    return 1 if failed else 0
