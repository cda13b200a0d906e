"""The results of a benchmark, and the cost of regions computed from them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.measured import Spread


@dataclass(frozen=True)
class Row:
    """A Row holds the measurements of one way to evaluate the losses, at one size."""

    name: str  # "plain", or loss mode, precision, number of regions and "tiled"
    size: int  # side of the square picture in pixels
    precision: str  # precision of the network, such as "float32"
    native: bool  # whether the device has units for that precision
    tile: int | None  # side of a tile in pixels, or None for the whole picture at once
    time_ratio: Spread | None  # time divided by the plain loop's in the same round, or None
    memory_ratio: float | None  # peak memory divided by the plain loop's, or None
    seconds: Spread  # wall time of one evaluation, forward and backward
    peak_memory_bytes: int  # peak of one evaluation, minus the bytes in use before it
    memory_kind: str  # "tensors" (`measure.peak_memory`) or "resident" (`resident.peak_resident`)


@dataclass(frozen=True)
class Benchmark:
    """A Benchmark holds the contents of benchmark.json."""

    settings: dict[str, str | int | list[int]]  # key -> value, for some of the benchmark's settings
    machine: dict[str, str | int]  # processor, versions and so on -> their values
    rows: list[Row]  # by picture size; at each size, the plain loop is first, if it was run
    skipped: list[str]  # descriptions of the rows that were left out, with the reason


def cost_of_regions(rows: Sequence[Row]) -> list[tuple[str, int, float, float]]:
    """Return the cost of each row with regions, relative to the same row without regions.

    Each tuple has the row's name, its size in pixels, the ratio of the median times and the ratio
    of the peak memories of one evaluation.
    """
    undivided = {(row.name, row.size): row for row in rows}
    costs = []
    for row in rows:
        base = undivided.get((re.sub(r" \d+ regions", "", row.name), row.size))
        if base is not None and base is not row:
            time = row.seconds.median / base.seconds.median
            costs.append((row.name, row.size, time, row.peak_memory_bytes / base.peak_memory_bytes))
    return costs
