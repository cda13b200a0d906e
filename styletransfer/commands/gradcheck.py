"""Check every hand-written backward against finite differences: `scripts/gradcheck.py`.

Exits with status 1 if any check fails.
"""

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Column, Table

from styletransfer.errors import UserError
from styletransfer.lessons.checks import TOLERANCE, cases, check

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
        "first and second derivative",
        title=f"backward against measured slopes, in float64, to {TOLERANCE:g}",
    )
    complaints = []
    for case in cases():
        complaints.append(check(case))
        words = f"[red]FAILED: {complaints[-1]}" if complaints[-1] else "[green]passed"
        table.add_row(case.name, case.shapes, words)
    Console().print(table)
    print(f"{complaints.count('')} of {len(complaints)} checks passed.")
    return 1 if any(complaints) else 0
