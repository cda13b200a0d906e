"""Measure time and memory against the plain loop: `python scripts/benchmark.py`.

Rows: the plain loop (benchmarks/plain.py), every loss mode in every precision, whole and tiled.

    sizes=[128,256,512]      sides of the square pictures; above plain_up_to= only the fastest rows
    rounds=5                 timed evaluations of each row, taken in turn
    precisions=[bfloat16]    fewer or other precisions
    tile=0                   side of a tile; 0 for half the picture, up to 1024
    features.weights=PATH    real weights in place of random ones; timing hardly depends on them
    quality=true             also: how soon is the default job as good as the plain loop?
    default_job=true         also: how long does `styletransfer train` take, start included?

The table is printed; benchmark.json, benchmark.md and benchmark.png land in the run folder. Run it
on a quiet machine, and copy results that are meant to be kept into benchmarks/results/.
"""

import importlib.util
from pathlib import Path

from styletransfer.commands.benchmark.reference import MakeReference
from styletransfer.commands.benchmark.report import rows_table, sentences
from styletransfer.commands.benchmark.run import benchmark
from styletransfer.config import BenchmarkConfig
from styletransfer.resources import resource

PLAIN = resource("benchmarks/plain.py")


def plain_loop() -> MakeReference:
    """Return the class in benchmarks/plain.py, which belongs to no package."""
    spec = importlib.util.spec_from_file_location("plain", PLAIN)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    make: MakeReference = module.PlainLoop
    return make


def main(config: BenchmarkConfig, folder: Path) -> None:
    """Measure; print the table, the findings and where the files are."""
    found = benchmark(config, folder, plain_loop())
    print(rows_table(found))
    print("time and memory are ratios to plain's; times are medians (quartiles)")
    for sentence in sentences(found):
        print(sentence)
    for name in ("benchmark.json", "benchmark.md", "benchmark.png"):
        print(folder / name)
