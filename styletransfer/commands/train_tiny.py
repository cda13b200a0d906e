"""Train a tiny model twice, with torch's operations and with ours: `scripts/train_tiny.py`.

The two columns agree to float64 rounding: a right backward is as good as autograd's own.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from rich.console import Console
from rich.table import Column, Table
from torch import Tensor, nn

from styletransfer.lessons import Parser, seed
from styletransfer.lessons.functions import Linear, ReLU, Scale

SUMMARY = "Train a tiny model twice: with built-in operations and with hand-written Functions."
INPUTS, HIDDEN, OUTPUTS, BATCH = 4, 8, 2, 32
LEARNING_RATE = 0.1


class BuiltInScale(Scale):
    """x * weight with the gradient left to autograd."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x * weight, shaped like x."""
        return x * self.weight


class Training(NamedTuple):
    """The loss before each step, and the parameters after the last."""

    losses: list[float]
    parameters: dict[str, Tensor]


def main(argv: Sequence[str] | None = None) -> None:
    """Train both, print every tenth loss and the largest difference."""
    parser = Parser(prog="train_tiny", description=SUMMARY)
    parser.add_argument("--steps", type=int, default=50, help="gradient steps (default 50)")
    parser.add_argument("--seed", type=seed, default=0, help="weights and data (default 0)")
    arguments = parser.parse_args(argv)
    if arguments.steps < 1:
        parser.error(f"--steps must be at least 1, not {arguments.steps}")
    built_in, handwritten = (
        train_tiny(handwritten, arguments.seed, arguments.steps) for handwritten in (False, True)
    )
    headings = ("step", "built-in operations", "hand-written Functions")
    columns = (Column(heading, justify="right") for heading in headings)
    table = Table(*columns, title="Linear, scale, relu, linear: mean squared error")
    losses = zip(built_in.losses, handwritten.losses, strict=True)
    for step, pair in enumerate(losses, start=1):
        if step % 10 == 0 or step in (1, arguments.steps):
            table.add_row(str(step), *(f"{loss:.15f}" for loss in pair))
    console = Console()
    console.print(table)
    difference = largest_difference(built_in, handwritten)
    console.print(f"Largest difference in any loss or final parameter: {difference:.1e}")


def tiny_model(handwritten: bool) -> nn.Sequential:
    """Build linear, scale, relu, linear in float64; both kinds draw the same initial weights."""
    kinds = (Linear, Scale, ReLU) if handwritten else (nn.Linear, BuiltInScale, nn.ReLU)
    linear, scale, relu = kinds
    layers = linear(INPUTS, HIDDEN), scale(HIDDEN), relu(), linear(HIDDEN, OUTPUTS)
    return nn.Sequential(*layers).double()


def train_tiny(handwritten: bool, seed: int = 0, steps: int = 50) -> Training:
    """Fit a fixed random target by gradient descent on the mean squared error.

    The caller's random state is left as it was.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = tiny_model(handwritten)
        x = torch.randn(BATCH, INPUTS, dtype=torch.float64)
    target = torch.stack([x.sin().sum(1), x.prod(1)], dim=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = (model(x) - target).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return Training(losses, {name: p.detach() for name, p in model.named_parameters()})


def largest_difference(one: Training, other: Training) -> float:
    """Return the largest absolute difference between two trainings' losses and parameters."""
    differences = [abs(a - b) for a, b in zip(one.losses, other.losses, strict=True)]
    for name, parameter in one.parameters.items():
        differences.append(float((parameter - other.parameters[name]).abs().max()))
    return max(differences)
