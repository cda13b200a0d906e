"""Train a tiny model twice: with torch's operations and with ours.

    python scripts/train_tiny.py

The two columns agree to float64 rounding: a right backward is as good as autograd's own.
"""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from styletransfer.lessons.arguments import Parser, seed
from styletransfer.lessons.tiny import largest_difference, train_tiny

SUMMARY = "Train a tiny model twice: with built-in operations and with hand-written Functions."


def main(argv: Sequence[str] | None = None) -> None:
    """Train both, print every tenth loss and the largest difference.

    Args:
        argv: `--steps N --seed N`, by default from the command line.
    """
    parser = Parser(prog="train_tiny", description=SUMMARY)
    parser.add_argument("--steps", type=int, default=50, help="gradient steps (default 50)")
    parser.add_argument("--seed", type=seed, default=0, help="weights and data (default 0)")
    arguments = parser.parse_args(argv)
    if arguments.steps < 1:
        parser.error(f"--steps must be at least 1, not {arguments.steps}")
    built_in = train_tiny(handwritten=False, seed=arguments.seed, steps=arguments.steps)
    handwritten = train_tiny(handwritten=True, seed=arguments.seed, steps=arguments.steps)

    table = Table(title="Linear, scale, relu, linear: mean squared error")
    for heading in ("step", "built-in operations", "hand-written Functions"):
        table.add_column(heading, justify="right")
    pairs = list(zip(built_in.losses, handwritten.losses, strict=True))
    for step, (theirs, ours) in enumerate(pairs, start=1):
        if step % 10 == 0 or step in (1, len(pairs)):
            table.add_row(str(step), f"{theirs:.15f}", f"{ours:.15f}")
    console = Console()
    console.print(table)
    difference = largest_difference(built_in, handwritten)
    console.print(f"Largest difference in any loss or final parameter: {difference:.1e}")
