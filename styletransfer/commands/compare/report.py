"""A comparison of the loss modes: as a table, as sentences, and as one picture."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from torch import Tensor

from styletransfer.pictures.convert import as_picture
from styletransfer.resources import templates
from styletransfer.system.measure import table

# float64 rounds at 1e-16; gradients that agree this well differ by rounding alone.
SAME_GRADIENT = 1e-10
# One colour and width per mode; the widths fall, so that curves that coincide stay visible.
LINES = (("#d98b5f", 5.0), ("#2f5d8a", 2.5), ("#6aa87f", 1.2))


@dataclass(frozen=True)
class Findings:
    """What was measured under one loss mode."""

    gradient_relative_error: float  # in float64, against the reference, the largest along its path
    backward_calls_per_evaluation: int  # calls of `backward` on a tensor
    seconds_per_evaluation: float  # median wall time of one forward and backward at full size
    peak_memory_bytes: int  # of one evaluation, above what is held before it
    final_loss: float  # the objective at the pastiche
    losses: list[float]  # the objective at every step; each scale has an objective of its own
    image: str  # name of the pastiche's file


@dataclass(frozen=True)
class Comparison:
    """All that comparison.json holds."""

    reference: str  # name of the mode that all are compared with
    modes: dict[str, Findings]  # name -> findings
    fake_backward_entries: dict[str, int]  # by_autograd and by_driver, in one evaluation each
    job: dict[str, str | int]  # what was run and measured; sizes in pixels
    machine: dict[str, str | int]  # see `measure.describe_machine`

    def ratio(self, name: str, value: str) -> float:
        """Return a mode's value over the reference's; NaN where that is zero."""
        base = getattr(self.modes[self.reference], value)
        return getattr(self.modes[name], value) / base if base else math.nan


def markdown(comparison: Comparison) -> str:
    """Return comparison.md: the table, then one sentence on each finding, from the numbers."""
    page = templates("styletransfer.commands.compare").get_template("comparison.md")
    return page.render(comparison=comparison, modes_table=modes_table, sentences=sentences)


def modes_table(comparison: Comparison) -> str:
    """Return a Markdown table, ratios to the reference first, padded to be read as plain text."""
    headings = ["loss mode", "time", "memory", "final loss", "calls of backward"]
    headings += ["gradient error", "s per evaluation", "peak MiB"]
    rows = [
        [
            name,
            f"{comparison.ratio(name, 'seconds_per_evaluation'):.2f}",
            f"{comparison.ratio(name, 'peak_memory_bytes'):.2f}",
            f"{comparison.ratio(name, 'final_loss'):.4f}",
            str(mode.backward_calls_per_evaluation),
            f"{mode.gradient_relative_error:.1e}",
            f"{mode.seconds_per_evaluation:.3g}",
            f"{mode.peak_memory_bytes / 2**20:.1f}",
        ]
        for name, mode in comparison.modes.items()
    ]
    return table(headings, rows)


def sentences(comparison: Comparison) -> list[str]:
    """Return what the table does not say; it follows from the numbers."""
    modes, reference = comparison.modes, comparison.reference
    entries = comparison.fake_backward_entries
    errors = {name: mode.gradient_relative_error for name, mode in modes.items()}
    verdict = f"more than the {SAME_GRADIENT:g} that rounding explains."
    if all(error <= SAME_GRADIENT for error in errors.values()):
        verdict = "rounding alone, which an optimiser amplifies from step to step."
    others = [f"{errors[name]:.1e} under {name}" for name in modes if name != reference]
    return [
        f"Gradients, in float64 at {comparison.job['gradient_points']} pictures from start to "
        f"end, differ from {reference}'s by this part of its norm: {', '.join(others)}. That is "
        f"{verdict}",
        f"Autograd entered a fake module's own `backward` {entries['by_autograd']} times while it "
        "differentiated the sum of the modules' losses; the driver, which calls it by hand, "
        f"{entries['by_driver']} times in one evaluation.",
    ]


def draw(comparison: Comparison, pictures: Mapping[str, Tensor]) -> Tensor:
    """Return the overview, (1, 3, H, W), sRGB in [0, 1]: pastiches above their loss curves."""
    count = len(pictures)
    height, width = next(iter(pictures.values())).shape[2:]
    # 4 inches per picture; extreme aspect ratios leave room around them instead.
    picture_height = min(max(4 * height / width, 1.5), 8.0)
    figure = Figure(figsize=(4 * count, picture_height + 4), dpi=120, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    grid = figure.add_gridspec(2, count, height_ratios=(picture_height + 0.6, 3.4))
    for index, (name, picture) in enumerate(pictures.items()):
        axes = figure.add_subplot(grid[0, index])
        axes.imshow(picture[0].permute(1, 2, 0).clamp(0, 1).numpy(), interpolation="hanning")
        axes.set_axis_off()
        cost = "the reference"
        if name != comparison.reference:
            time = comparison.ratio(name, "seconds_per_evaluation")
            memory = comparison.ratio(name, "peak_memory_bytes")
            cost = f"{time:.2f} x time, {memory:.2f} x memory"
        axes.set_title(f"{name}\n{cost}", fontsize=11, color="#333333")
    axes = figure.add_subplot(grid[1, :])
    curves = [mode.losses for mode in comparison.modes.values()]
    for name, losses, (colour, thickness) in zip(comparison.modes, curves, LINES, strict=True):
        steps = range(1, len(losses) + 1)
        axes.plot(steps, losses, color=colour, linewidth=thickness, label=name)
    if all(loss > 0 for losses in curves for loss in losses):  # there is no logarithm of the others
        axes.set_yscale("log")
    axes.set(xlabel="step", ylabel="objective")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, loc="upper right")  # curves fall
    canvas.draw()  # type: ignore[no-untyped-call]
    pixels = np.asarray(canvas.buffer_rgba())  # type: ignore[no-untyped-call]
    return as_picture(pixels[..., :3], "overview").rgb
