"""What does a Module cost over its function, and a hand-written Function over autograd's own?

    python benchmarks/modules.py

Prints ratios measured in one run, candidate over baseline: below 1 the candidate is faster. The
two are timed in turn, so that a drifting machine slows both; a ratio is the median over the
rounds, with its interquartile range. Run it on a quiet machine.
"""

import argparse
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.benchmark import Timer

from styletransfer.functions import gram_matrix, moments_tap
from styletransfer.lessons.linear import Linear, linear
from styletransfer.lessons.relu import ReLU, relu
from styletransfer.losses import GRAM

MODULE = "module / function"
OURS = "ours / autograd's"


@dataclass(frozen=True)
class Pair:
    """Two ways to compute the same thing from inputs of one size."""

    what: str
    size: str
    baseline: Callable[[], Tensor | tuple[Tensor, ...]]
    candidate: Callable[[], Tensor | tuple[Tensor, ...]]
    leaves: list[Tensor]
    ratio: str = MODULE


def gram_loss(features: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the Gram loss with the gradient left to autograd."""
    return features.view_as(features), (gram_matrix(features) - target).square().mean()


def tapped_gram_loss(features: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the same on the moments tap, as loss_mode=autograd_function does."""
    tapped, moments = moments_tap(features, GRAM.with_mean)
    return tapped, GRAM.loss(moments, target)


def pairs(device: torch.device) -> list[Pair]:
    """Module against function, then autograd's own against ours, small inputs and large."""
    found = []
    for rows, width in ((4, 16), (1024, 512)):
        size = f"{rows} x {width}"
        x = torch.randn(rows, width, device=device, requires_grad=True)
        theirs = nn.Linear(width, width, device=device)
        ours = Linear(width, width).to(device)
        w, b = theirs.weight, theirs.bias
        their_function = partial(functional.linear, x, w, b)
        our_function = partial(linear, x, ours.weight, ours.bias)
        our_leaves = [x, *ours.parameters()]
        found += [
            Pair("nn.ReLU", size, partial(functional.relu, x), partial(nn.ReLU(), x), [x]),
            Pair("our ReLU", size, partial(relu, x), partial(ReLU(), x), [x]),
            Pair("nn.Linear", size, their_function, partial(theirs, x), [x, w, b]),
            Pair("our Linear", size, our_function, partial(ours, x), our_leaves),
            Pair("relu", size, partial(functional.relu, x), partial(relu, x), [x], OURS),
            Pair("linear", size, their_function, partial(linear, x, w, b), [x, w, b], OURS),
        ]
    for channels, side in ((16, 8), (64, 128), (512, 32)):
        size = f"1 x {channels} x {side} x {side}"
        features = torch.randn(1, channels, side, side, device=device, requires_grad=True)
        target = torch.zeros(channels, channels, device=device)
        theirs_loss = partial(gram_loss, features, target)
        our_loss = partial(tapped_gram_loss, features, target)
        found.append(Pair("Gram loss (moments_tap)", size, theirs_loss, our_loss, [features], OURS))
    return found


def backward_of(
    forward: Callable[[], Tensor | tuple[Tensor, ...]], leaves: list[Tensor]
) -> Callable[[], object]:
    """Return a call that runs the backward pass alone, as often as wanted."""
    result = forward()
    outputs = result if isinstance(result, tuple) else (result,)
    directions = [torch.ones_like(x) for x in outputs]
    return lambda: torch.autograd.grad(outputs, leaves, directions, retain_graph=True)


def ratio(
    baseline: Callable[[], object], candidate: Callable[[], object], rounds: int
) -> list[float]:
    """Time the two in turn; return the quartiles of candidate over baseline."""
    timers = [Timer("call()", globals={"call": call}) for call in (baseline, candidate)]
    # Enough calls for about 10 ms a measurement, after a warm-up.
    once = timers[0].timeit(20).mean
    calls = max(1, int(0.01 / once))
    ratios = []
    for _ in range(rounds):
        before, after = (timer.timeit(calls).mean for timer in timers)
        ratios.append(after / before)
    return statistics.quantiles(ratios, n=4)


def main() -> None:
    """Measure every pair and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="default cpu")
    parser.add_argument("--rounds", type=int, default=25, help="rounds per ratio (default 25)")
    arguments = parser.parse_args()
    if arguments.rounds < 2:
        parser.error(f"--rounds must be at least 2 to show a spread, not {arguments.rounds}")
    if arguments.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: torch finds no CUDA device here")
    torch.manual_seed(0)
    table = Table(title="Time, candidate over baseline: median (quartiles)")
    for heading in ("ratio", "what", "size", "forward", "backward"):
        table.add_column(heading)
    for pair in pairs(torch.device(arguments.device)):
        forward = ratio(pair.baseline, pair.candidate, arguments.rounds)
        backward = ratio(
            backward_of(pair.baseline, pair.leaves),
            backward_of(pair.candidate, pair.leaves),
            arguments.rounds,
        )
        cells = [f"{q[1]:.2f} ({q[0]:.2f} to {q[2]:.2f})" for q in (forward, backward)]
        table.add_row(pair.ratio, pair.what, pair.size, *cells)
    console = Console()
    console.print(table)
    console.print(f"float32 on {arguments.device}, one thread, torch {torch.__version__}")


if __name__ == "__main__":
    main()
