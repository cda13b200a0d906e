"""A benchmark as JSON, as Markdown and as sentences."""

import json
from collections.abc import Mapping
from dataclasses import asdict

from styletransfer.commands.benchmark.results import (
    Benchmark,
    Quality,
    cost_of_regions,
    tiles_per_pixel,
)
from styletransfer.system.table import table


def as_json(benchmark: Benchmark) -> str:
    """Return benchmark.json."""
    return json.dumps(asdict(benchmark), indent=2, allow_nan=False) + "\n"


def markdown(benchmark: Benchmark) -> str:
    """Return benchmark.md: the table, then one sentence on each finding, from the numbers."""
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
    parts = ["# Benchmark", header, rows_table(benchmark), "![](benchmark.png)", findings, where]
    return "\n\n".join(part for part in parts if part) + "\n"


def rows_table(benchmark: Benchmark) -> str:
    """Return a Markdown table, ratios to plain first, padded to be read as plain text."""
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
    """Return one sentence per finding beside the table; what it says follows from the numbers."""
    found: list[str] = []
    if benchmark.growth:
        exponents = ", ".join(f"{name} {e:.2f}" for name, e in benchmark.growth.items())
        found.append(f"Time grows as pixels to the power of: {exponents}.")
    for name, (small, large, ratio) in tiles_per_pixel(benchmark.rows).items():
        found.append(
            f"{name} at {large} pixels takes {ratio:.2f} times the time per pixel of the whole "
            f"picture at {small}."
        )
    for name, size, time, memory in cost_of_regions(benchmark.rows):
        found.append(
            f"{name} at {size} pixels takes {time:.2f} times the time and {memory:.2f} times the "
            "memory of the undivided picture."
        )
    if any(not row.native for row in benchmark.rows):
        found.append("Rows called emulated use a precision that this device has no units for.")
    if benchmark.quality is not None:
        found.append(_quality_sentence(benchmark.quality, benchmark.settings))
        found += _float32_sentence(benchmark.quality)
        found += _relay_sentence(benchmark.quality)
    if benchmark.default_job is not None:
        found.append(
            "`styletransfer train`, with the bundled pictures and network, takes "
            f"{benchmark.default_job} s, start of the process included."
        )
    found += [f"Left out: {what}." for what in benchmark.skipped]
    return found


def _quality_sentence(quality: Quality, settings: Mapping[str, str | int | list[int]]) -> str:
    plain = (
        f"the plain loop's best objective of {quality.plain_evaluations} evaluations at "
        f"{quality.width} x {quality.height} pixels ({settings['weights']} weights)"
    )
    if quality.ratio is None:
        return (
            f"The default job ({quality.job_precision}, {quality.job_steps} steps) did not reach "
            f"{plain}: it ended at {quality.job_final / quality.target:.3f} times that, in "
            f"{quality.job_total_seconds / quality.plain_seconds:.3f} times the time."
        )
    return (
        f"The default job ({quality.job_precision}) reached {plain} in {quality.ratio:.3f} times "
        f"its time (1/{1 / quality.ratio:.1f}), after {quality.job_evaluations} evaluations of its "
        f"own, and ended at {quality.job_final / quality.target:.3f} times that objective."
    )


def _relay_sentence(quality: Quality) -> list[str]:
    if quality.relay_seconds is None or quality.relay_final is None:
        return []
    return [
        "Begun by the bundled network (`experiment=relay`) it ended at "
        f"{quality.relay_final / quality.target:.3f} times the plain loop's best objective, in "
        f"{quality.relay_seconds / quality.plain_seconds:.3f} times the time."
    ]


def _float32_sentence(quality: Quality) -> list[str]:
    if quality.float32_final is None:
        return []
    return [
        f"Its objective at the end is {quality.job_final / quality.float32_final:.3f} times that "
        "of the same job in float32."
    ]
