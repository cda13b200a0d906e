"""The results of a benchmark, the machine, and the cost of regions computed from them."""

import os
import platform
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from styletransfer.system.devices import cpu_bfloat16_units


@dataclass(frozen=True)
class Spread:
    """A Spread is the median and the quartiles of several measurements of the same thing."""

    median: float
    lower: float  # lower quartile
    upper: float  # upper quartile

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Return the spread of `values`, which are one or more."""
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        lower, median, upper = statistics.quantiles(values, n=4, method="inclusive")
        return cls(median, lower, upper)

    def __str__(self) -> str:
        """Return the median and, in brackets, the quartiles, such as "0.31 (0.30 to 0.33)"."""
        return f"{self.median:.3g} ({self.lower:.3g} to {self.upper:.3g})"


@dataclass(frozen=True)
class Row:
    """A Row is the measurements of one way to evaluate the losses, at one size."""

    name: str  # "plain", or loss mode, precision, number of regions and "tiled"
    size: int  # side of the square picture in pixels
    precision: str  # precision of the network, such as "float32"
    native: bool  # whether the device has units for that precision
    tile: int | None  # side of a tile in pixels, or None for the whole picture at once
    time_ratio: Spread | None  # seconds divided by plain's in the same round; None without plain
    memory_ratio: float | None  # peak memory divided by plain's; None without plain
    seconds: Spread  # wall time of one evaluation, forward and backward
    peak_memory_bytes: int  # peak of one evaluation, minus the bytes in use before it
    memory_kind: str  # "tensors" (`measure.peak_memory`) or "resident" (`resident.peak_resident`)


@dataclass(frozen=True)
class Benchmark:
    """A Benchmark is the contents of benchmark.json."""

    settings: dict[str, str | int | list[int]]  # key -> value, of the keys that matter
    machine: dict[str, str | int]  # processor, versions and so on -> their values
    rows: list[Row]  # by picture size; at each size first the loop of benchmarks/plain.py
    skipped: list[str]  # descriptions of the rows left out, with the reason


def describe_machine(device: torch.device) -> dict[str, str | int]:
    """Return the facts on which a measurement depends: device, processor, torch."""
    named = getattr(torch.get_device_module(device), "get_device_name", None)
    return {
        "device": device.type if named is None else named(device),
        "processor": platform.machine(),
        "instructions": ", ".join([torch.backends.cpu.get_cpu_capability(), *cpu_bfloat16_units()]),
        "cores": os.cpu_count() or 1,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }


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
