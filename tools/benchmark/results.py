"""The results of a benchmark, and what regions cost by them."""

import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """The median and the quartiles of what was measured round by round."""

    median: float
    lower: float
    upper: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Return the spread of at least one value."""
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        lower, median, upper = statistics.quantiles(values, n=4, method="inclusive")
        return cls(median, lower, upper)

    def __str__(self) -> str:
        """Return such as "0.31 (0.30 to 0.33)"."""
        return f"{self.median:.3g} ({self.lower:.3g} to {self.upper:.3g})"


@dataclass(frozen=True)
class Row:
    """Evaluations of one kind at one size."""

    name: str  # "plain", or loss mode, precision, regions and "tiled"
    size: int  # side of the square picture in pixels
    precision: str  # of the network
    native: bool  # whether the device has units for that precision
    tile: int | None  # side of a tile in pixels, or None for the whole picture at once
    time_ratio: Spread | None  # seconds over plain's in the same round, where plain was run
    memory_ratio: float | None  # peak memory over plain's
    seconds: Spread  # wall time of one evaluation, forward and backward
    peak_memory_bytes: int  # of one evaluation, above what is held before it
    memory_kind: str  # "tensors" (`measure.peak_memory`) or "resident" (`resident.peak_resident`)


@dataclass(frozen=True)
class Benchmark:
    """The contents of benchmark.json."""

    settings: dict[str, str | int | list[int]]
    machine: dict[str, str | int]  # see `measure.describe_machine`
    rows: list[Row]  # by size, plain first
    skipped: list[str]  # what was left out, and why


def cost_of_regions(rows: Sequence[Row]) -> list[tuple[str, int, float, float]]:
    """Return the rows of divided pictures, each with its cost over that of the undivided picture.

    That is the row's name and its size in pixels, the time and the peak memory of an evaluation,
    both over those of the same row without regions.
    """
    undivided = {(row.name, row.size): row for row in rows}
    costs = []
    for row in rows:
        base = undivided.get((re.sub(r" \d+ regions", "", row.name), row.size))
        if base is not None and base is not row:
            time = row.seconds.median / base.seconds.median
            costs.append((row.name, row.size, time, row.peak_memory_bytes / base.peak_memory_bytes))
    return costs
