"""How much faster do several processes differentiate one picture, and what do they exchange?

    torchrun --nproc-per-node=2 benchmarks/processes.py --size 2048 --tile 512

Every process has one core. Prints the time of one evaluation (VGG-19 in float32, Gatys' layers) by
the first process alone and by all of them, taken in turn in one run, the bytes that they exchange,
and what a model of these figures says of eight processes at 8192 pixels:

    efficiency = (evaluation + optimiser) / (N * (share * evaluation + optimiser + exchange))

`share` is a process's part of the work, halos included, by the layout of its bands; the optimiser
is the same everywhere, so that it gains nothing; the picture's gradient is exchanged in a ring, of
which each process sends and receives 2 (N - 1) / N. Run it on a quiet machine.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from styletransfer.features import FeatureExtractor, build_features, optimize_for_inference
from styletransfer.job.job import Job, Scale
from styletransfer.job.memory import Prediction
from styletransfer.losses import get_loss_mode
from styletransfer.objective.criterion import Criterion, Losses, gradient_at
from styletransfer.objective.inputs import Inputs, pair
from styletransfer.objective.tiled import TiledObjective
from styletransfer.optimize.descent import Descent
from styletransfer.settings import FeaturesConfig, OptimizerConfig, StyleTransferConfig
from styletransfer.system.measure import describe_machine, table
from styletransfer.system.process import keep_freed_memory
from styletransfer.system.processes import Processes, joined
from tools.benchmark.results import Spread

CPU = torch.device("cpu")
PROJECTED_PROCESSES, PROJECTED_SIZE = 8, 8192


class Counted(Processes):
    """Processes that count what they exchange."""

    def __init__(self, processes: Processes) -> None:
        super().__init__(processes.rank, processes.count)
        # Bytes of tensors as large as a picture, and of all other tensors and numbers.
        self.pictures = self.others = 0

    def add(self, tensors: Sequence[Tensor]) -> None:
        """Count the bytes, and add the tensors up."""
        for tensor in tensors:
            if tensor.dim() == 4:
                self.pictures += tensor.nbytes
            else:
                self.others += tensor.nbytes
        super().add(tensors)

    def largest(self, numbers: list[int]) -> list[int]:
        """Count the bytes, and find the largest."""
        self.others += 8 * len(numbers)
        return super().largest(numbers)


class Flat:
    """An objective that costs nothing, under which a step is the optimiser's alone."""

    def evaluate(self, image: Tensor) -> Losses:
        """Return a loss; its gradient is the picture."""
        image.grad = image.detach().clone()
        return Losses({"flat": image.detach().mean()})


@dataclass(frozen=True)
class Model:
    """Seconds of one evaluation at some size: where they go, by measurement."""

    evaluation: float  # of one process alone
    optimizer: float  # of one step, beside its evaluation
    bandwidth: float  # bytes per second that a process sends, and receives, at a time

    def efficiency(self, count: int, share: float, exchanged: float) -> float:
        """Return the efficiency of `count` processes; see the top of this file.

        Each has that share of the evaluation's work; bytes exchanged are added up over all of them.
        """
        exchange = 2 * (count - 1) / count * exchanged / self.bandwidth
        step = share * self.evaluation + self.optimizer + exchange
        return (self.evaluation + self.optimizer) / (count * step)


def share_of(network: FeatureExtractor, side: int, tile: int, count: int) -> float:
    """Return the share of the work of an evaluation that each of `count` processes has."""
    blank = torch.empty(1, 1, 1, 1).expand(1, 3, side, side)  # takes no memory
    closed, scale = get_loss_mode("autograd_function"), Scale((side, side), ((side, side),), 1)
    alone = Job(StyleTransferConfig(), network, closed, pair(blank, blank))
    one_of = replace(alone, processes=Processes(0, count))
    return Prediction(one_of, scale).work(tile) / Prediction(alone, scale).work(tile)


def seconds_of(work: Callable[[], object], processes: Processes, *, alone: bool) -> float:
    """Return the wall time of one call, by the first process alone or by all at once."""
    processes.largest([0])  # all begin together
    began = time.perf_counter()
    if processes.rank == 0 or not alone:
        work()
    processes.largest([0])
    return time.perf_counter() - began


def seconds_of_optimizer(picture: Tensor) -> float:
    """Return the wall time of one step of Adam's on a picture, without its evaluation."""
    descent = Descent(Flat(), picture, OptimizerConfig("adam", 0.02))
    steps = descent.run(3)
    next(steps)
    began = time.perf_counter()
    next(steps), next(steps)
    return (time.perf_counter() - began) / 2


def arguments() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=2048, help="side of the picture (default 2048)")
    parser.add_argument("--tile", type=int, default=512, help="side of a tile (default 512)")
    parser.add_argument("--rounds", type=int, default=3, help="timed evaluations (default 3)")
    parser.add_argument("--weights", default="random", help="of VGG-19: a file (default random)")
    return parser.parse_args()


def measure(
    said: argparse.Namespace, network: FeatureExtractor, pictures: Inputs, processes: Processes
) -> tuple[list[float], list[float], Counted]:
    """Return seconds alone, seconds of all, and what was exchanged in one evaluation."""
    mode = get_loss_mode("autograd_function")
    criterion = Criterion.of(StyleTransferConfig().objective)
    image, counted = torch.rand_like(pictures.content), Counted(processes)
    given = (network, mode, criterion, pictures, said.tile)
    shared = partial(gradient_at, TiledObjective(*given, processes=counted), image)
    single: Callable[[], object] = int
    if processes.rank == 0:
        single = partial(gradient_at, TiledObjective(*given), image)
    alone, together = [], []
    for turn in range(1 + said.rounds):
        alone.append(seconds_of(single, processes, alone=True))
        if turn == said.rounds:
            counted.pictures = counted.others = 0
        together.append(seconds_of(shared, processes, alone=False))
    return alone[1:], together[1:], counted  # the first ones warm up


def report(said: argparse.Namespace, processes: Processes) -> list[str]:
    """Measure, and return what is to be printed."""
    features = FeaturesConfig(name="vgg19", weights=said.weights)
    layers = Criterion.of(StyleTransferConfig().objective).layers
    network = build_features(features, seed=0).ended_at(layers)
    network = optimize_for_inference(network, CPU, torch.float32)
    torch.manual_seed(0)
    content, style = torch.rand(2, 1, 3, said.size, said.size)
    alone, together, counted = measure(said, network, pair(content, style), processes)
    ring = 2 * (processes.count - 1) / processes.count * content.nbytes
    exchange = min(
        seconds_of(lambda: processes.add([content]), processes, alone=False) for _ in range(3)
    )
    model = Model(Spread.of(alone).median, seconds_of_optimizer(style), ring / exchange)
    rows = [["1", str(Spread.of(alone)), ""]]
    ratios = Spread.of([b / a for a, b in zip(alone, together, strict=True)])
    rows.append([str(processes.count), str(Spread.of(together)), str(ratios)])
    larger = (PROJECTED_SIZE / said.size) ** 2
    large = Model(larger * model.evaluation, larger * model.optimizer, model.bandwidth)
    share = share_of(network, PROJECTED_SIZE, said.tile, PROJECTED_PROCESSES)
    gradient = 3 * 4 * PROJECTED_SIZE**2 + counted.others
    efficiency = large.efficiency(PROJECTED_PROCESSES, share, gradient)
    machine = describe_machine(CPU, torch.float32)
    return [
        table(["processes", "seconds of an evaluation", "of one process's"], rows),
        f"exchanged in an evaluation: {counted.pictures / 1e6:.2f} MB of the picture's gradient, "
        f"and {counted.others / 1e6:.3f} MB beside it",
        f"measured: evaluation {model.evaluation:.1f} s, optimizer {model.optimizer:.2f} s, "
        f"bandwidth {model.bandwidth / 1e9:.2f} GB/s; by its layout each process has "
        f"{share_of(network, said.size, said.tile, processes.count):.3f} of the work",
        f"model: {PROJECTED_PROCESSES} processes at {PROJECTED_SIZE} pixels, each with "
        f"{share:.3f} of the work, have an efficiency of {efficiency:.2f}",
        f"{said.size} x {said.size} pixels in tiles of {said.tile}, median (quartiles) of "
        f"{said.rounds}; {machine['instructions']}, one thread a process, torch {machine['torch']}",
    ]


def main() -> None:
    """Measure, and let the first process print."""
    said = arguments()
    torch.set_num_threads(1)
    keep_freed_memory()
    with joined(CPU) as processes:
        if processes.count == 1:
            raise SystemExit("start it by torchrun --nproc-per-node=2 benchmarks/processes.py")
        lines = report(said, processes)
        if processes.rank == 0:
            print("\n".join(lines))


if __name__ == "__main__":
    main()
