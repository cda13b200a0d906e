"""The results of a benchmark, and what follows from its rows."""

import math
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from styletransfer.system.measure import Spread


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
        relay_seconds: of a job that the bundled network begins, as `experiment=relay` has it; None
            where that network is itself the job's.
        relay_final: the objective at that job's result, or None.
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
    relay_seconds: float | None = None
    relay_final: float | None = None


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
        default_job: seconds of `styletransfer train`; None unless asked for.
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
        name: statistics.linear_regression(*zip(*measured, strict=True)).slope
        for name, measured in points.items()
        if len(measured) > 1
    }


def tiles_per_pixel(rows: Sequence[Row]) -> dict[str, tuple[int, int, float]]:
    """Compare the largest tiled row with a smaller whole one of the same kind.

    That one is at 512 pixels, or as near to it as there is.

    Returns:
        tiled row's name -> the two sizes in pixels, and time per pixel, tiled over whole.
    """
    ratios: dict[str, tuple[int, int, float]] = {}
    for row in rows:
        name = row.name.removesuffix(" tiled")
        if row.tile is None or row.size != max(r.size for r in rows if r.name == row.name):
            continue
        whole = [r for r in rows if r.name == name and r.size < row.size]
        if whole:
            base = min(whole, key=lambda r: abs(r.size - 512))
            ratio = (row.seconds.median / row.size**2) / (base.seconds.median / base.size**2)
            ratios[row.name] = (base.size, row.size, ratio)
    return ratios


def cost_of_regions(rows: Sequence[Row]) -> list[tuple[str, int, float, float]]:
    """Return the rows of divided pictures, each with its cost over that of the undivided picture.

    Returns:
        The row's name and its size in pixels, the time and the peak memory of an evaluation, both
        over those of the same row without regions.
    """
    undivided = {(row.name, row.size): row for row in rows}
    costs = []
    for row in rows:
        base = undivided.get((re.sub(r" \d+ regions", "", row.name), row.size))
        if base is not None and base is not row:
            time = row.seconds.median / base.seconds.median
            costs.append((row.name, row.size, time, row.peak_memory_bytes / base.peak_memory_bytes))
    return costs
