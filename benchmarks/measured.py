"""Functions that all benchmarks use: the spread of values, a description of the machine, tables."""

import os
import platform
import statistics
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch

from styletransfer.system.devices import cpu_bfloat16_units


@dataclass(frozen=True)
class Spread:
    """A Spread holds the median and the quartiles of several measurements of the same thing."""

    median: float
    lower: float  # lower quartile
    upper: float  # upper quartile

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Return the spread of one or more `values`."""
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        lower, median, upper = statistics.quantiles(values, n=4, method="inclusive")
        return cls(median, lower, upper)

    def __str__(self) -> str:
        """Return the median and, in brackets, the quartiles, such as "0.31 (0.30 to 0.33)"."""
        return f"{self.median:.3g} ({self.lower:.3g} to {self.upper:.3g})"


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


def table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], left: Collection[int] = (0,)
) -> str:
    """Return a padded Markdown table; columns whose numbers are in `left` are left-aligned."""
    columns = []
    for number, column in enumerate(zip(headings, *rows, strict=True)):
        width = max(map(len, column))
        rule = "-" * (width - 1)
        pad, rule = (str.ljust, f"{rule}-") if number in left else (str.rjust, f"{rule}:")
        heading, *cells = (pad(cell, width) for cell in column)
        columns.append([heading, rule, *cells])
    return "\n".join(f"| {' | '.join(row)} |" for row in zip(*columns, strict=True))
