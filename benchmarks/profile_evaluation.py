"""Measure which operators take the time of one evaluation of Gatys' losses under VGG-19.

    python benchmarks/profile_evaluation.py --size 512

The script prints the milliseconds of one evaluation on the CPU by kind of operator, and their share
of the total, in float32 and, if the processor has units for it, bfloat16. Weights and pictures are
random, because time does not depend on them. Run the script on an idle machine.
"""

import argparse
import statistics
from collections import Counter

import torch
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import ProfilerActivity, profile

from benchmarks.measured import table
from styletransfer.features import build_features, optimize_for_inference
from styletransfer.losses import LOSS_MODES
from styletransfer.objective import Criterion
from styletransfer.objective.inputs import pair
from styletransfer.objective.whole import Objective
from styletransfer.settings import FeaturesConfig, ObjectiveConfig
from styletransfer.system.allocator import keep_freed_memory
from styletransfer.system.devices import cpu_bfloat16_units

# Kind of operator -> parts of the names that the profiler gives such operators.
KINDS = {
    "convolutions, backward": ("convolution_backward",),
    "convolutions, forward": ("mkldnn_convolution",),
    "Gram matrices and style gradients": ("::addmm", "::mm"),
    "pools": ("maximum", "max_pool2d"),
    "ReLUs": ("clamp_min", "threshold"),
    "copies and zeros": ("copy_", "fill_", "zero_"),
}
OTHER = "all else"


def milliseconds(precision: torch.dtype, size: int, rounds: int) -> dict[str, float]:
    """Return operator kind -> median milliseconds of one evaluation at `size` x `size` pixels."""
    network = build_features(FeaturesConfig(name="vgg19", weights="random"), seed=0)
    network = optimize_for_inference(network.ended_at(["relu5_1"]), torch.device("cpu"), precision)
    content, style, image = torch.rand(3, 1, 3, size, size)
    mode = LOSS_MODES["autograd_function"]
    objective = Objective(network, mode, Criterion.of(ObjectiveConfig()), pair(content, style))
    objective.evaluate(image.requires_grad_())
    profiles: list[Counter[str]] = []
    for _ in range(rounds):
        with profile(activities=[ProfilerActivity.CPU]) as recorded:
            objective.evaluate(image)
        times: Counter[str] = Counter()
        for event in recorded.events():
            times[kind_of(event)] += event.self_cpu_time_total / 1000
        profiles.append(times)
    return {kind: statistics.median(times[kind] for times in profiles) for kind in [*KINDS, OTHER]}


def kind_of(event: FunctionEvent) -> str:
    """Return an operator's kind: a key of KINDS, or OTHER."""
    kinds = (kind for kind, parts in KINDS.items() if any(part in event.name for part in parts))
    return next(kinds, OTHER)


def main() -> None:
    """Profile both precisions and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=512, help="side in pixels (default 512)")
    parser.add_argument("--rounds", type=int, default=5, help="evaluations (default 5)")
    arguments = parser.parse_args()
    if arguments.size < 16:
        parser.error(f"--size must be at least 16, the stride of relu5_1, not {arguments.size}")
    if arguments.rounds < 1:
        parser.error(f"--rounds must be at least 1, not {arguments.rounds}")
    keep_freed_memory()
    torch.manual_seed(0)
    headings, columns = ["operators"], []
    for precision in (torch.float32, torch.bfloat16):
        if precision == torch.bfloat16 and not cpu_bfloat16_units():
            print("left out: bfloat16, which this processor only emulates")
            continue
        times = milliseconds(precision, arguments.size, arguments.rounds)
        headings += [f"{str(precision).removeprefix('torch.')}, ms", "share"]
        columns.append([f"{times[kind]:.0f}" for kind in times])
        columns.append([f"{times[kind] / sum(times.values()):.2f}" for kind in times])
    print(f"One evaluation at {arguments.size} x {arguments.size}")
    print(table(headings, list(zip([*KINDS, OTHER], *columns, strict=True))))


if __name__ == "__main__":
    main()
