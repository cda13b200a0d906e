"""A comparison of the loss modes, as JSON and as Markdown."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass

from styletransfer.system.files import to_json
from styletransfer.system.table import table

# float64 rounds at 1e-16; gradients that agree this well differ by rounding alone.
SAME_GRADIENT = 1e-10


@dataclass(frozen=True)
class Findings:
    """What was measured under one loss mode.

    Attributes:
        gradient_relative_error: in float64, against the reference, the largest along its path.
        backward_calls_per_evaluation: calls of `backward` on a tensor.
        seconds_per_evaluation: median wall time of one forward and backward at full size.
        peak_memory_bytes: of one evaluation, above what is held before it.
        final_loss: the objective at the pastiche.
        losses: the objective at every step; each scale has an objective of its own.
        image: name of the pastiche's file.
    """

    gradient_relative_error: float
    backward_calls_per_evaluation: int
    seconds_per_evaluation: float
    peak_memory_bytes: int
    final_loss: float
    losses: list[float]
    image: str


@dataclass(frozen=True)
class Entries:
    """How often the fake modules' `backward` was entered in one evaluation each.

    Attributes:
        by_autograd: while autograd differentiated the sum of the modules' losses.
        by_driver: by the driver, which calls it by hand.
    """

    by_autograd: int
    by_driver: int


@dataclass(frozen=True)
class Comparison:
    """All that comparison.json holds.

    Attributes:
        reference: name of the mode that all are compared with.
        modes: name -> findings.
        fake_backward_entries: see `Entries`.
        job: width and height in pixels, features, optimizer, steps, scales, gradient_points,
            timing_rounds.
        machine: see `measure.describe_machine`.
    """

    reference: str
    modes: dict[str, Findings]
    fake_backward_entries: Entries
    job: dict[str, str | int]
    machine: dict[str, str | int]

    def ratios(self, value: Callable[[Findings], float]) -> dict[str, float]:
        """Return mode -> value over the reference's value; NaN where that is zero."""
        base = value(self.modes[self.reference])
        return {name: value(each) / base if base else math.nan for name, each in self.modes.items()}


def as_json(comparison: Comparison) -> str:
    """Return comparison.json."""
    return to_json(asdict(comparison), indent=2) + "\n"


def markdown(comparison: Comparison) -> str:
    """Return comparison.md: the table, then one sentence on each finding, from the numbers."""
    job, machine = comparison.job, comparison.machine
    header = (
        f"One {job['width']} x {job['height']} pastiche, {job['features']}, {job['optimizer']}, "
        f"{job['steps']} steps, scales: {job['scales']}. Every loss mode began with the same "
        f"picture. Time, memory and final loss are ratios to {comparison.reference}'s."
    )
    where = (
        f"Measured on {machine['device']} ({machine['processor']}, {machine['instructions']}, "
        f"cores: {machine['cores']}, threads: {machine['threads']}) with torch {machine['torch']}, "
        f"the network in {machine['precision']}. An evaluation is one forward and backward of the "
        "whole objective at full size; memory is its peak above what is held before it."
    )
    findings = "\n".join(f"- {sentence}" for sentence in sentences(comparison))
    parts = ("# The loss modes compared", header, modes_table(comparison), "![](comparison.png)")
    return "\n\n".join((*parts, findings, where)) + "\n"


def modes_table(comparison: Comparison) -> str:
    """Return a Markdown table, ratios to the reference first, padded to be read as plain text."""
    times = comparison.ratios(lambda each: each.seconds_per_evaluation)
    memory = comparison.ratios(lambda each: each.peak_memory_bytes)
    losses = comparison.ratios(lambda each: each.final_loss)
    columns: dict[str, Callable[[str, Findings], str]] = {
        "loss mode": lambda name, each: name,
        "time": lambda name, each: f"{times[name]:.2f}",
        "memory": lambda name, each: f"{memory[name]:.2f}",
        "final loss": lambda name, each: f"{losses[name]:.4f}",
        "calls of backward": lambda name, each: str(each.backward_calls_per_evaluation),
        "gradient error": lambda name, each: f"{each.gradient_relative_error:.1e}",
        "s per evaluation": lambda name, each: f"{each.seconds_per_evaluation:.3g}",
        "peak MiB": lambda name, each: f"{each.peak_memory_bytes / 2**20:.1f}",
    }
    rows = [
        [text(name, each) for text in columns.values()] for name, each in comparison.modes.items()
    ]
    return table(list(columns), rows)


def sentences(comparison: Comparison) -> list[str]:
    """Return one sentence per finding; what it says follows from the numbers."""
    modes, reference, job = comparison.modes, comparison.reference, comparison.job
    entries = comparison.fake_backward_entries
    same = all(each.gradient_relative_error <= SAME_GRADIENT for each in modes.values())
    verdict = (
        "rounding alone" if same else f"more than the {SAME_GRADIENT:g} that rounding explains"
    )
    drift = " An optimiser amplifies rounding from step to step." if same else ""
    errors = _by_mode(comparison, lambda name: f"{modes[name].gradient_relative_error:.1e}")
    calls = ", ".join(
        f"{each.backward_calls_per_evaluation} under {name}" for name, each in modes.items()
    )

    def times(value: Callable[[Findings], float], digits: int) -> str:
        ratios = comparison.ratios(value)
        return _by_mode(comparison, lambda name: f"{ratios[name]:.{digits}f} times")

    return [
        f"Gradients, in float64 at {job['gradient_points']} pictures from start to end, differ "
        f"from {reference}'s by this part of its norm: {errors}. That is {verdict}.",
        f"Calls of `backward` in one evaluation: {calls}.",
        f"Time of one evaluation, in units of {reference}'s: "
        f"{times(lambda each: each.seconds_per_evaluation, 2)} "
        f"(medians of {job['timing_rounds']} rounds that time the modes in turn).",
        f"Peak memory of one evaluation, in units of {reference}'s: "
        f"{times(lambda each: each.peak_memory_bytes, 2)}.",
        f"Final loss, in units of {reference}'s: {times(lambda each: each.final_loss, 4)}.{drift}",
        f"Autograd entered a fake module's own `backward` {entries.by_autograd} times while it "
        "differentiated the sum of the modules' losses; the driver, which calls it by hand, "
        f"{entries.by_driver} times in one evaluation.",
    ]


def _by_mode(comparison: Comparison, text: Callable[[str], str]) -> str:
    """Return "... under A, ... under B" for all modes but the reference."""
    others = [name for name in comparison.modes if name != comparison.reference]
    return ", ".join(f"{text(name)} under {name}" for name in others)
