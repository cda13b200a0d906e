"""Compare time and memory of the loss modes with a plain loop: `python scripts/benchmark.py`.

The rows are the plain loop (benchmarks/plain.py) and the loss modes in every precision that the
device does not emulate, for the whole picture and for tiles. The default takes at most ten minutes
on a slow laptop. Keys:

    sizes=[128,256,512]      sides of the square pictures; above plain_up_to= only the fastest rows
    rounds=5                 timed evaluations of each row, taken in turn
    modes=[fake_backward]    fewer or other loss modes
    precisions=[bfloat16]    fewer or other precisions; emulated=true keeps those that are emulated
    tile=0                   side of a tile; 0 for half the picture, up to 1024
    features.weights=PATH    real weights in place of random ones; timing hardly depends on them

The table is printed, and another one that compares looks with the convolutions of their network
(see benchmarks/looks.py); benchmark.json and benchmark.md are written to the run folder. Run the
benchmark on an idle machine, and copy results worth keeping into benchmarks/results/.
"""

import logging
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NoReturn

import torch
from tqdm import tqdm

from benchmarks import looks
from benchmarks.evaluations import rows as ways
from benchmarks.evaluations.config import BenchmarkConfig, check
from benchmarks.evaluations.reference import plain_loop
from benchmarks.evaluations.report import as_json, markdown, rows_table, sentences
from benchmarks.evaluations.resident import is_measurable, peak_resident
from benchmarks.evaluations.results import Benchmark, Row
from benchmarks.evaluations.rows import Candidate
from benchmarks.measured import Spread, describe_machine
from styletransfer.errors import UserError
from styletransfer.features import FeatureExtractor
from styletransfer.lessons import measure
from styletransfer.lessons.measure import Work
from styletransfer.objective import check_size
from styletransfer.runs.claim import claimed
from styletransfer.system.devices import (
    PRECISIONS,
    choose_device,
    choose_precision,
    free_bytes,
    has_native_bfloat16,
)
from styletransfer.system.files import atomic
from styletransfer.system.outputs import check_outputs

logger = logging.getLogger(__name__)

PLAIN = "plain"
FILES = ("benchmark.md", "benchmark.json")  # names in the run folder
# Smallest side in pixels at which looks are measured.
LEAST = 64
# Calls of each row that are not timed: one to warm up, and two to measure memory.
UNTIMED = 3


def main(config: BenchmarkConfig, folder: Path) -> None:
    """Compare time and memory of the loss modes with the plain loop, and print the results."""
    results = benchmark(config, folder)
    print(rows_table(results))
    print("time and memory are ratios to plain's; times are medians (quartiles)")
    for sentence in sentences(results):
        print(sentence)
    for name in ("benchmark.json", "benchmark.md"):
        print(folder / name)
    for size in (size for size in config.sizes if LEAST <= size <= config.plain_up_to):
        print(f"\nLooks with the bundled network, {size} pixels:")
        print(looks.measured(size, config.rounds, f"device={config.device}"))


def benchmark(config: BenchmarkConfig, folder: Path) -> Benchmark:
    """Measure, write benchmark.json and benchmark.md to `folder`, and return the results.

    A row is one way to evaluate the losses. Each is called once to warm up; then every round calls
    all rows of a size in turn, so that a machine that changes speed affects all alike. Peak memory
    counts torch's tensors; above `plain_up_to`, on a Linux CPU, it is the resident memory of a
    separate process, which is what a computer must have free (see `resident.peak_resident`).

    The files are written after each size, the smallest first, so that a benchmark that is stopped
    early keeps its measurements. (UserError: bad input, before anything is measured.)
    """
    check(config)
    device = choose_device(config.device)
    config, skipped = without_emulated(config, device)
    sizes = sorted(config.sizes)
    ways.squares(config, sizes[0], device)
    network = ways.build_network(config, device)
    check_size(network, (sizes[0], sizes[0]), f"a picture of sizes={config.sizes}")
    check_outputs([folder / name for name in FILES], [])
    auto, free = choose_precision("auto", device), free_bytes(device)
    plans: dict[int, list[Candidate]] = {}
    for size in sizes:
        plans[size], left_out = ways.candidates(config, network, size, auto, free)
        skipped += left_out
    rows: list[Row] = []
    with claimed(folder, FILES), progress(config, plans) as bar:
        for size, chosen in plans.items():
            bar.set_description(f"{size} x {size} pixels")
            rows += measure_size(config, network, chosen, size, bar)
            results = summary(config, device, rows, skipped)
            write(results, folder)
    return results


def without_emulated(
    config: BenchmarkConfig, device: torch.device
) -> tuple[BenchmarkConfig, list[str]]:
    """Return the config without precisions that the device emulates, and a line that names these.

    If `config.emulated`, these precisions are kept. (UserError if no precision is left.)
    """
    emulated = [name for name in config.precisions if is_emulated(PRECISIONS[name], device)]
    if config.emulated or not emulated:
        return config, []
    native = [name for name in config.precisions if name not in emulated]
    reason = f"{', '.join(emulated)}, which this device only emulates"
    if not native:
        raise UserError(f"nothing to measure but {reason}; add emulated=true")
    return replace(config, precisions=native), [f"{reason} (emulated=true measures it, too)"]


def progress(config: BenchmarkConfig, plans: dict[int, list[Candidate]]) -> "tqdm[NoReturn]":
    """Return a progress bar whose total is a number of pixels: a call adds its picture's pixels."""
    calls = config.rounds + UNTIMED
    rows = {size: len(chosen) + (size <= config.plain_up_to) for size, chosen in plans.items()}
    return tqdm(
        total=sum(calls * count * size**2 for size, count in rows.items()),
        smoothing=0,
        bar_format="{desc}{percentage:3.0f}%|{bar}| {elapsed}, {remaining} left",
        dynamic_ncols=True,
        disable=sys.stderr is None,
    )


def summary(
    config: BenchmarkConfig, device: torch.device, rows: list[Row], skipped: list[str]
) -> Benchmark:
    """Return the rows measured so far, with the settings and the machine."""
    weights = config.features.weights
    return Benchmark(
        settings={
            "features": config.features.name,
            # A file's path has no meaning on another machine.
            "weights": weights if weights in ("pretrained", "random") else "given",
            "padding": config.features.padding,
            "content_layers": ", ".join(config.objective.content_layers),
            "style_layers": ", ".join(config.objective.style_layers),
            "sizes": sorted(config.sizes),
            "rounds": config.rounds,
        },
        machine=describe_machine(device),
        rows=list(rows),
        skipped=skipped,
    )


def write(results: Benchmark, folder: Path) -> None:
    """Write benchmark.json and benchmark.md."""
    for file, text in zip(FILES, (markdown(results), as_json(results)), strict=True):
        with atomic(folder / file) as temporary:
            temporary.write_text(text, encoding="utf-8")


def measure_size(
    config: BenchmarkConfig,
    network: FeatureExtractor,
    chosen: list[Candidate],
    size: int,
    bar: "tqdm[NoReturn]",
) -> list[Row]:
    """Measure the `chosen` rows, and the plain loop up to `plain_up_to`, at one size."""
    device = next(network.parameters()).device
    content, style = ways.squares(config, size, device)
    networks = {each.precision: ways.in_precision(network, each.precision) for each in chosen}
    named = {each.name: each for each in chosen}
    work: dict[str, Work] = {}
    if size <= config.plain_up_to:
        named = {PLAIN: Candidate(PLAIN, "float32"), **named}
        loop = plain_loop(config, network, content, style)
        work[PLAIN] = partial(loop.evaluate, ways.middle(content, style))
    for each in chosen:
        work[each.name] = ways.evaluation(config, each, networks[each.precision], content, style)
    timed = measure.seconds_by_round(work, config.rounds, device, lambda: bar.update(size**2))
    in_process = size <= config.plain_up_to or device.type != "cpu" or not is_measurable()
    if not in_process:
        work.clear()  # frees memory for the process that `peak_resident` starts
    memory: dict[str, int] = {}
    for name, way in named.items():
        if in_process:
            memory[name] = measure.peak_memory(work[name], device)
        else:
            memory[name] = peak_resident(config, way, size)
        bar.update((UNTIMED - 1) * size**2)
    plain = timed.get(PLAIN)
    return [
        Row(
            name=name,
            size=size,
            precision=way.precision,
            native=not is_emulated(PRECISIONS[way.precision], device),
            tile=way.tile,
            time_ratio=None if plain is None else _ratios(timed[name], plain),
            memory_ratio=None if plain is None else memory[name] / memory[PLAIN],
            seconds=Spread.of(timed[name]),
            peak_memory_bytes=memory[name],
            memory_kind="tensors" if in_process else "resident",
        )
        for name, way in named.items()
    ]


def _ratios(seconds: list[float], plain: list[float]) -> Spread:
    return Spread.of([own / base for own, base in zip(seconds, plain, strict=True)])


def is_emulated(precision: torch.dtype, device: torch.device) -> bool:
    """Return whether `device` has no units for `precision` and computes in another one."""
    return precision == torch.bfloat16 and not has_native_bfloat16(device)
