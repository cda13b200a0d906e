"""Compare the time of a Module with its function's, and of a hand-written Function with autograd's.

    python benchmarks/modules.py

The script prints the time of the first (the candidate), divided by that of the second (the
baseline); below 1 the candidate is faster. The two are timed in turn, so that a change of the
machine's speed affects both. A ratio is the median over the rounds, with the quartiles. Run the
script on an idle machine.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.benchmark import Timer

from benchmarks.measured import Spread, table
from styletransfer.losses import StyleDistance
from styletransfer.losses.moments import gram_matrix

MODULE = "module / function"
OURS = "ours / autograd's"


@dataclass(frozen=True)
class Pair:
    """A Pair is two ways to compute the same thing from inputs of one size."""

    what: str  # what is computed, such as "nn.ReLU"
    size: str  # shape of the input
    baseline: Callable[[], Tensor | tuple[Tensor, ...]]  # the forward pass of one way
    candidate: Callable[[], Tensor | tuple[Tensor, ...]]  # the forward pass of the other way
    leaves: list[Tensor]  # tensors whose gradients the backward pass computes
    ratio: str = MODULE  # which two ways are compared


def gram_loss(features: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the Gram loss with the gradient left to autograd."""
    return features.view_as(features), (gram_matrix(features) - target).square().mean()


def pairs(device: torch.device) -> list[Pair]:
    """Return pairs of a function and a module, and of autograd and our Function for Gram losses."""
    found = []
    for rows, width in ((4, 16), (1024, 512)):
        size = f"{rows} x {width}"
        x = torch.randn(rows, width, device=device, requires_grad=True)
        theirs = nn.Linear(width, width, device=device)
        w, b = theirs.weight, theirs.bias
        their_function = partial(functional.linear, x, w, b)
        found += [
            Pair("nn.ReLU", size, partial(functional.relu, x), partial(nn.ReLU(), x), [x]),
            Pair("nn.Linear", size, their_function, partial(theirs, x), [x, w, b]),
        ]
    for channels, side in ((16, 8), (64, 128), (512, 32)):
        size = f"1 x {channels} x {side} x {side}"
        features = torch.randn(1, channels, side, side, device=device, requires_grad=True)
        target = torch.zeros(channels, channels, device=device)
        theirs_loss = partial(gram_loss, features, target)
        our_loss = partial(StyleDistance(target).tap, features)  # as loss_mode=autograd_function
        found.append(Pair("Gram loss (MomentsTap)", size, theirs_loss, our_loss, [features], OURS))
    return found


def backward_of(
    forward: Callable[[], Tensor | tuple[Tensor, ...]], leaves: list[Tensor]
) -> Callable[[], object]:
    """Return a function that runs only the backward pass; it may be called repeatedly."""
    result = forward()
    outputs = result if isinstance(result, tuple) else (result,)
    directions = [torch.ones_like(x) for x in outputs]
    return lambda: torch.autograd.grad(outputs, leaves, directions, retain_graph=True)


def ratio(baseline: Callable[[], object], candidate: Callable[[], object], rounds: int) -> str:
    """Time both in turn; return the median and quartiles of candidate time over baseline time."""
    timers = [Timer("call()", globals={"call": call}) for call in (baseline, candidate)]
    # A measurement is this number of calls, which take about 10 ms together.
    calls = max(1, int(0.01 / timers[0].timeit(20).mean))
    ratios = []
    for _ in range(rounds):
        before, after = (timer.timeit(calls).mean for timer in timers)
        ratios.append(after / before)
    return str(Spread.of(ratios))


def main() -> None:
    """Measure every pair and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="default cpu")
    parser.add_argument("--rounds", type=int, default=25, help="rounds per ratio (default 25)")
    arguments = parser.parse_args()
    if arguments.rounds < 2:
        parser.error(f"--rounds must be at least 2 to show a spread, not {arguments.rounds}")
    torch.manual_seed(0)
    rows = []
    for pair in pairs(torch.device(arguments.device)):
        ways = pair.baseline, pair.candidate
        forward = ratio(*ways, arguments.rounds)
        backwards = [backward_of(way, pair.leaves) for way in ways]
        backward = ratio(backwards[0], backwards[1], arguments.rounds)
        rows.append([pair.ratio, pair.what, pair.size, forward, backward])
    print("Time, candidate over baseline: median (quartiles)")
    print(table(["ratio", "what", "size", "forward", "backward"], rows, left=[0, 1, 2]))
    print(f"float32 on {arguments.device}, one thread, torch {torch.__version__}")


if __name__ == "__main__":
    main()
