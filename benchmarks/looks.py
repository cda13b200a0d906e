"""Compare the time of an evaluation of a look with that of its network's convolutions alone.

    python benchmarks/looks.py --size 512
    python benchmarks/looks.py --growth 512 1024 2048 3072

The script prints seconds of one evaluation, forward and backward, for the looks `painted` (the
default) and `classic` with the bundled network, and their ratio to the convolutions alone. `trunk`
is the network without any loss. All rows are timed in turn. With `--growth`, the script prints how
the time of the default look grows with the size instead. Run the script on an idle machine.
"""

import argparse
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from benchmarks.measured import Spread, table
from styletransfer.job import Job
from styletransfer.job.prepare import prepare
from styletransfer.lessons.measure import seconds_by_round
from styletransfer.objective import gradient_at
from styletransfer.optimize.run import objective_of
from styletransfer.settings.compose import compose, settings_of
from styletransfer.system.allocator import keep_freed_memory
from styletransfer.train import train

CONVOLUTIONS = "convolutions alone"
# Name of a row -> the words of the command line that choose its look.
LOOKS = {
    "classic": ["experiment=classic"],
    "default without the match at relu1_1": ["objective.match_layers=[relu2_1,relu3_1,relu4_1]"],
    "default (painted)": [],
}


def job_of(words: list[str], size: int) -> Job:
    """Return the job of `train` with these words, at `size` pixels (longer side)."""
    return prepare(settings_of(compose(train, [*words, f"size={size}"])))


def layers_of(job: Job) -> list[nn.Module]:
    """Return the layers of a job's network up to its deepest loss, with its preprocessing first."""
    ended = job.extractor.ended_at(job.criterion.layers)
    return [ended.preprocess, *ended.layers.values()]


def trunk(job: Job) -> Callable[[], object]:
    """Return a function that runs a job's network forward and backward, without any loss."""
    image = job.full_size().content.detach().requires_grad_()
    network = nn.Sequential(*layers_of(job))
    with torch.no_grad():
        direction = torch.ones_like(network(image))
    return lambda: torch.autograd.grad(network(image), image, direction)


def convolutions(job: Job) -> Callable[[], object]:
    """Return a function that runs each convolution of a job's network forward and backward."""
    works: list[Callable[[], object]] = []
    features = job.full_size().content
    with torch.no_grad():
        for layer in layers_of(job):
            before, features = features, layer(features.clone())
            if isinstance(layer, nn.Conv2d):
                works.append(partial(both_ways, layer, before, torch.ones_like(features)))
    return lambda: [work() for work in works]


def both_ways(layer: nn.Module, features: Tensor, direction: Tensor) -> Tensor:
    """Run a layer forward and backward; return the gradient of its input (1, C, H, W)."""
    leaf = features.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(layer(leaf), leaf, direction)
    return gradient


def measured(size: int, rounds: int, *words: str, tile: int | None = None) -> str:
    """Return a Markdown table of all rows: seconds, and ratios to the convolutions alone.

    `words` are further words of the command line, such as "device=cpu". The looks, not the other
    rows, are in tiles with a side of `tile` pixels; with None they are whole.
    """
    default = job_of([*words], size)
    work: dict[str, Callable[[], object]] = {
        CONVOLUTIONS: convolutions(default),
        "trunk": trunk(default),
    }
    for name, own in LOOKS.items():
        job = job_of([*words, *own], size)
        pictures = job.full_size()
        objective = objective_of(job, pictures, tile)
        work[name] = partial(gradient_at, objective, pictures.content)
    timed = seconds_by_round(work, rounds, default.device)
    rows = []
    for name, seconds in timed.items():
        ratios = [own / base for own, base in zip(seconds, timed[CONVOLUTIONS], strict=True)]
        rows.append([name, str(Spread.of(seconds)), str(Spread.of(ratios))])
    heading = f"seconds, {default.precision}"
    return table(["one evaluation", heading, ": convolutions"], rows, left=[0])


def growth(sizes: list[int], rounds: int) -> str:
    """Return a Markdown table: for each size, seconds of the default look, also per megapixel."""
    rows = []
    for size in sizes:
        job = job_of([], size)
        pictures = job.full_size()
        content = pictures.content
        work = {"default": partial(gradient_at, objective_of(job, pictures, tile=None), content)}
        seconds = seconds_by_round(work, rounds, job.device)["default"]
        megapixels = content.shape[2] * content.shape[3] / 1e6
        spreads = (Spread.of(seconds), Spread.of([each / megapixels for each in seconds]))
        rows.append([f"{content.shape[3]} x {content.shape[2]}", *map(str, spreads)])
    return table(["pixels", "seconds", "seconds a megapixel"], rows, left=[0])


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", type=int, default=512, help="longer side in pixels")
    parser.add_argument("--rounds", type=int, default=7, help="timed evaluations of each row")
    parser.add_argument("--tile", type=int, help="side of the looks' tiles in pixels")
    parser.add_argument("--growth", type=int, nargs="+", help="sizes to compare; see above")
    arguments = parser.parse_args()
    keep_freed_memory()
    if arguments.growth:
        print(growth(arguments.growth, arguments.rounds))
    else:
        print(measured(arguments.size, arguments.rounds, tile=arguments.tile))


if __name__ == "__main__":
    main()
