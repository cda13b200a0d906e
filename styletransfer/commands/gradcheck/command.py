"""Check every hand-written backward against measured slopes.

    python scripts/gradcheck.py

Exits with status 1 if any check fails.
"""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from styletransfer.lessons.arguments import Parser, seed
from styletransfer.lessons.cases import cases
from styletransfer.lessons.checks import STEP, Case, CheckResult, check, check_in_float32

SUMMARY = "Check every hand-written backward, first and second derivatives."


def main(argv: Sequence[str] | None = None) -> int:
    """Print both tables and return the exit status.

    Args:
        argv: `--seed N`, by default from the command line.
    """
    parser = Parser(prog="gradcheck", description=SUMMARY)
    parser.add_argument("--seed", type=seed, default=0, help="where to check (default 0)")
    chosen = cases(parser.parse_args(argv).seed)
    console = Console()
    outcomes = [check(case) for case in chosen]
    console.print(verdicts(outcomes))
    console.print(float32_lesson(first_of_each(chosen)))
    console.print(
        "Why float32 fails: gradcheck divides f(x + h) - f(x - h) by 2h, with h = "
        f"{STEP:g}. Numbers near 1 lie 1.2e-07 apart in float32, so the difference keeps about "
        "one digit. The last column shows that the backward itself is right in float32 too."
    )
    failed = sum(not outcome.passed for outcome in outcomes)
    console.print(f"{len(outcomes) - failed} of {len(outcomes)} checks passed.")
    return 1 if failed else 0


def verdicts(outcomes: list[CheckResult]) -> Table:
    """Lay out one row per case."""
    table = Table(
        title="float64: largest deviation of backward from the measured slope",
        caption="first and second derivatives, relative to the Jacobian's largest entry",
    )
    table.add_column("function", no_wrap=True)
    table.add_column("shapes")
    table.add_column("first", justify="right")
    table.add_column("second", justify="right")
    table.add_column("verdict")
    for outcome in outcomes:
        table.add_row(
            outcome.case.name,
            outcome.case.shapes,
            f"{outcome.first:.1e}",
            f"{outcome.second:.1e}",
            "[green]passed" if outcome.passed else f"[red]FAILED: {outcome.complaint}",
        )
    return table


def float32_lesson(chosen: list[Case]) -> Table:
    """Lay out the same check in float32, one case per function."""
    table = Table(title="The same check in float32")
    table.add_column("function")
    table.add_column("gradcheck")
    table.add_column("backward against difference quotient", justify="right")
    table.add_column("float32 backward against float64's", justify="right")
    for case in chosen:
        outcome = check_in_float32(case)
        table.add_row(
            case.name,
            "passes" if outcome.gradcheck_passed else "fails",
            f"{outcome.quotient_deviation:.1e}",
            f"{outcome.backward_deviation:.1e}",
        )
    return table


def first_of_each(chosen: list[Case]) -> list[Case]:
    """Keep the first case of each function."""
    first: dict[str, Case] = {}
    for case in chosen:
        first.setdefault(case.name, case)
    return list(first.values())
