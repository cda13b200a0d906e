"""Check every hand-written backward against finite differences: `scripts/gradcheck.py`.

Exits with status 1 if any check fails.
"""

import sys
from collections.abc import Sequence

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
    complaints = []
    for case in cases():
        complaints.append(check(case))
        words = f"FAILED: {complaints[-1]}" if complaints[-1] else "passed"
        print(f"{case.name:<14} {case.shapes:<32} {words}")
    print(f"{complaints.count('')} of {len(complaints)} checks passed, to {TOLERANCE:g}.")
    return 1 if any(complaints) else 0
