"""Compare the time of a step of our L-BFGS with that of the recursion in textbooks.

    OMP_NUM_THREADS=1 python benchmarks/lbfgs.py [--device cuda]

For pictures of several sizes the script prints the time of all steps of one scale with our L-BFGS,
divided by their time with the recursion. The ratio is below 1 if ours is faster. Both run in turn
for several rounds; each time is the least of its rounds. For a picture of n values, both take 8 n
floating-point operations per pair in a step: ours takes 4 n in each of its two products of a matrix
and a vector.
"""

import argparse
from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.measured import table
from styletransfer.lessons.measure import now
from styletransfer.optimize.lbfgs import LBFGS

HISTORY, FIRST = 20, 1 / 255


def recursion(shift: Tensor) -> Callable[[], None]:
    """Return a function that makes a step of L-BFGS by Nocedal and Wright's algorithm 7.4."""
    pairs: list[tuple[Tensor, Tensor, float]] = []
    last: list[Tensor] = []  # the last step and the gradient before it

    @torch.no_grad()
    def step() -> None:
        assert shift.grad is not None
        gradient = shift.grad.flatten()
        if last:
            move, change = last[0], last[1].neg_().add_(gradient)
            pairs.append((move, change, change.dot(move).item()))
            del pairs[:-HISTORY]
        along, shares = gradient.neg(), []
        for move, change, curvature in reversed(pairs):
            shares.append(along.dot(move).item() / curvature)
            along.add_(change, alpha=-shares[-1])
        if pairs:
            along.mul_(pairs[-1][2] / pairs[-1][1].dot(pairs[-1][1]).item())
        else:
            along.mul_(FIRST * along.numel() / along.norm(1).item())
        for (move, change, curvature), share in zip(pairs, reversed(shares), strict=True):
            along.add_(move, alpha=share - along.dot(change).item() / curvature)
        last[:] = along, gradient
        shift.add_(along.view_as(shift))

    return step


def compact(shift: Tensor) -> Callable[[], None]:
    """Return a function that makes a step of our L-BFGS."""
    return LBFGS(shift, history=HISTORY, rate=1.0, first=FIRST).step


def seconds(make: Callable[[Tensor], Callable[[], None]], target: Tensor, steps: int) -> float:
    """Return the seconds of `steps` steps to `target` (1, 3, H, W), without those for gradients."""
    weights = torch.logspace(0, 4, target.numel(), device=target.device).view_as(target)
    shift = torch.zeros_like(target).requires_grad_()
    step, spent = make(shift), 0.0
    for _ in range(steps):
        away = shift.detach() - target
        shift.grad = weights * away
        began = now(target.device)
        step()
        spent += now(target.device) - began
    return spent


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    rows = []
    for width in (256, 384, 512):
        for steps in (15, 30):
            target = torch.rand(1, 3, width * 2 // 3, width, device=options.device)
            times = [
                (seconds(compact, target, steps), seconds(recursion, target, steps))
                for _ in range(options.rounds)
            ]
            ours, theirs = (min(column) for column in zip(*times, strict=True))
            rows.append((f"{width} x {width * 2 // 3}", f"{steps}", f"{ours / theirs:.2f}"))
    print(table(("picture", "steps", "ours / recursion"), rows))


if __name__ == "__main__":
    main()
