"""A benchmark as JSON, as Markdown and as sentences."""

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

# Lower quartile, median and upper quartile fall on these of the cuts into four.
QUARTERS = 4


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
        lower, median, upper = statistics.quantiles(values, n=QUARTERS, method="inclusive")
        return cls(median, lower, upper)

    def __str__(self) -> str:
        """Return such as "0.31 (0.30 to 0.33)"."""
        return f"{self.median:.3g} ({self.lower:.3g} to {self.upper:.3g})"


@dataclass(frozen=True)
class Row:
    """Evaluations of one kind at one size.

    Attributes:
        name: "plain", or loss mode, precision and "tiled".
        size: side of the square picture in pixels.
        precision: of the network.
        native: whether the device has units for that precision.
        tile: side of a tile in pixels, or None for the whole picture at once.
        time_ratio: seconds over plain's in the same round; None where plain was not run.
        memory_ratio: peak memory over plain's, or None.
        seconds: wall time of one evaluation, forward and backward.
        peak_memory_bytes: of one evaluation, above what is held before it.
        memory_kind: "tensors" (see `measure.peak_memory`) or "resident" (see
            `resident.peak_resident`).
    """

    name: str
    size: int
    precision: str
    native: bool
    tile: int | None
    time_ratio: Spread | None
    memory_ratio: float | None
    seconds: Spread
    peak_memory_bytes: int
    memory_kind: str


@dataclass(frozen=True)
class Quality:
    """How soon the default job is as good as the plain loop. One run of each.

    All objectives are the plain loop's own, in float32, in units of the package's weights.

    Attributes:
        width: of the picture in pixels.
        height: of the picture in pixels.
        ratio: seconds over plain_seconds; None if the job never reached the target.
        seconds: of the job until the first picture that is at least as good; judging not counted.
        plain_seconds: of the plain loop until its best evaluation.
        target: the lowest objective among the plain loop's evaluations.
        plain_evaluations: made by the plain loop.
        plain_best_evaluation: the one, from 1, that met the target.
        plain_final: the objective at the plain loop's last picture; None if not finite.
        job_evaluations: steps of the job until then, or in all.
        job_steps: planned for the job.
        job_total_seconds: of the whole job.
        job_final: the objective at the job's result.
        float32_final: the objective at the result of the same job in float32; None where
            `precision=auto` chose that.
        job_precision: what `precision=auto` chose.
    """

    width: int
    height: int
    ratio: float | None
    seconds: float | None
    plain_seconds: float
    target: float
    plain_evaluations: int
    plain_best_evaluation: int
    plain_final: float | None
    job_evaluations: int
    job_steps: int
    job_total_seconds: float
    job_final: float
    float32_final: float | None
    job_precision: str


@dataclass(frozen=True)
class Benchmark:
    """All that benchmark.json holds.

    Attributes:
        settings: what was measured.
        machine: see `measure.describe_machine`.
        rows: by size, plain first.
        growth: row's name -> e in seconds ~ pixels^e, fitted over its sizes.
        skipped: what was left out, and why.
        quality: see `Quality`; None unless asked for.
        default_job: seconds of `python scripts/train.py`; None unless asked for.
    """

    settings: dict[str, str | int | list[int]]
    machine: dict[str, str | int]
    rows: list[Row]
    growth: dict[str, float]
    skipped: list[str]
    quality: Quality | None = None
    default_job: Spread | None = None


def growth(rows: Sequence[Row]) -> dict[str, float]:
    """Return name -> slope of log seconds over log pixels, for rows of two sizes or more."""
    points: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        point = (2 * math.log(row.size), math.log(row.seconds.median))
        points.setdefault(row.name, []).append(point)
    return {
        name: statistics.linear_regression(*zip(*found, strict=True)).slope
        for name, found in points.items()
        if len(found) > 1
    }


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
    parts = ["# Benchmark", header, table(benchmark), "![](benchmark.png)", findings, where]
    return "\n\n".join(part for part in parts if part) + "\n"


def table(benchmark: Benchmark) -> str:
    """Return a Markdown table, ratios to plain first, padded to be read as plain text."""
    cells = [["size", "row", "time", "memory", "s per evaluation", "peak MiB"]]
    for row in benchmark.rows:
        star = "*" if row.memory_kind == "resident" else ""
        cells.append(
            [
                str(row.size),
                row.name
                + ("" if row.tile is None else f" {row.tile}")
                + ("" if row.native else " (emulated)"),
                "" if row.time_ratio is None else str(row.time_ratio),
                "" if row.memory_ratio is None else f"{row.memory_ratio:.2f}",
                str(row.seconds),
                f"{row.peak_memory_bytes / 2**20:.1f}{star}",
            ]
        )
    widths = [max(len(cell) for cell in column) for column in zip(*cells, strict=True)]
    cells.insert(1, ["-" * (width - 1) + ":" for width in widths])
    cells[1][1] = "-" * widths[1]
    return "\n".join(
        "| "
        + " | ".join(
            cell.ljust(width) if column == 1 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        + " |"
        for row in cells
    )


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
    if any(not row.native for row in benchmark.rows):
        found.append("Rows called emulated use a precision that this device has no units for.")
    if benchmark.quality is not None:
        found.append(_quality_sentence(benchmark.quality, benchmark.settings))
        found += _float32_sentence(benchmark.quality)
    if benchmark.default_job is not None:
        found.append(
            "`python scripts/train.py`, with the bundled pictures and network, takes "
            f"{benchmark.default_job} s, start of the process included."
        )
    found += [f"Left out: {what}." for what in benchmark.skipped]
    return found


def tiles_per_pixel(rows: Sequence[Row]) -> dict[str, tuple[int, int, float]]:
    """Compare the largest tiled row with a smaller whole one of the same kind.

    That one is at 512 pixels, or as near to it as there is.

    Returns:
        tiled row's name -> the two sizes in pixels, and time per pixel, tiled over whole.
    """
    found: dict[str, tuple[int, int, float]] = {}
    for row in rows:
        name = row.name.removesuffix(" tiled")
        if row.tile is None or row.size != max(r.size for r in rows if r.name == row.name):
            continue
        whole = [r for r in rows if r.name == name and r.size < row.size]
        if not whole:
            continue
        base = min(whole, key=lambda r: abs(r.size - 512))
        ratio = (row.seconds.median / row.size**2) / (base.seconds.median / base.size**2)
        found[row.name] = (base.size, row.size, ratio)
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


def _float32_sentence(quality: Quality) -> list[str]:
    if quality.float32_final is None:
        return []
    return [
        f"Its objective at the end is {quality.job_final / quality.float32_final:.3f} times that "
        "of the same job in float32."
    ]
