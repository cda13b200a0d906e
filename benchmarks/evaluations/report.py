"""Formats the results of a benchmark as JSON, as Markdown and as sentences."""

import json
from dataclasses import asdict

from benchmarks.evaluations.results import Benchmark, cost_of_regions
from benchmarks.measured import table


def as_json(benchmark: Benchmark) -> str:
    """Return the text of benchmark.json."""
    return json.dumps(asdict(benchmark), indent=2, allow_nan=False) + "\n"


def markdown(benchmark: Benchmark) -> str:
    """Return the text of benchmark.md: the table, then one sentence for each finding."""
    settings, machine = benchmark.settings, benchmark.machine
    header = (
        f"{settings['features']}, {settings['weights']} weights. Time and memory are ratios to the "
        f"plain loop's in the same run; each time is the median of {settings['rounds']} rounds "
        "that take the rows in turn, with its quartiles. An evaluation is one forward and backward "
        "of the whole objective."
    )
    where = (
        f"Measured on {machine['device']} ({machine['processor']}, {machine['instructions']}, "
        f"cores: {machine['cores']}, threads: {machine['threads']}) with torch {machine['torch']}. "
        "Memory is the peak above what is held before; of rows marked * the process's resident "
        "memory, targets included, and of the others torch's tensors."
    )
    findings = "\n".join(f"- {sentence}" for sentence in sentences(benchmark))
    parts = ["# Benchmark", header, rows_table(benchmark), findings, where]
    return "\n\n".join(part for part in parts if part) + "\n"


def rows_table(benchmark: Benchmark) -> str:
    """Return a Markdown table of all rows, with spaces so that it is also readable as text."""
    headings = ["size", "row", "time", "memory", "s per evaluation", "peak MiB"]
    cells = [
        [
            str(row.size),
            row.name
            + ("" if row.tile is None else f" {row.tile}")
            + ("" if row.native else " (emulated)"),
            "" if row.time_ratio is None else str(row.time_ratio),
            "" if row.memory_ratio is None else f"{row.memory_ratio:.2f}",
            str(row.seconds),
            f"{row.peak_memory_bytes / 2**20:.1f}" + ("*" if row.memory_kind == "resident" else ""),
        ]
        for row in benchmark.rows
    ]
    return table(headings, cells, left=[1])


def sentences(benchmark: Benchmark) -> list[str]:
    """Return sentences on the cost of regions, on emulated rows, and on rows that are left out."""
    lines: list[str] = []
    for name, size, time, memory in cost_of_regions(benchmark.rows):
        lines.append(
            f"{name} at {size} pixels takes {time:.2f} times the time and {memory:.2f} times the "
            "memory of the undivided picture."
        )
    if any(not row.native for row in benchmark.rows):
        lines.append("Rows called emulated use a precision that this device has no units for.")
    return lines + [f"Left out: {what}." for what in benchmark.skipped]
