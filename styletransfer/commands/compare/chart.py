"""A comparison of the loss modes as one picture: pastiches side by side above their loss curves."""

from collections.abc import Mapping

import numpy as np
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter
from torch import Tensor

from styletransfer.commands.compare.report import Comparison

# One colour per mode; the widths fall, so that curves that coincide stay visible.
COLOURS = ("#d98b5f", "#2f5d8a", "#6aa87f")
LINE_WIDTHS = (5.0, 2.5, 1.2)


class PlainLogFormatter(LogFormatter):
    """Matplotlib's choice of which ticks to label, written 0.6 instead of 6e-01."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Return the label of a tick at `x`, empty where ticks would crowd."""
        return f"{x:g}" if super().__call__(x, pos) else ""


def draw(comparison: Comparison, pictures: Mapping[str, Tensor]) -> Tensor:
    """Return the overview, (1, 3, H, W), sRGB in [0, 1]: pastiches above their loss curves."""
    names = list(comparison.modes)
    times = comparison.ratios(lambda each: each.seconds_per_evaluation)
    memory = comparison.ratios(lambda each: each.peak_memory_bytes)
    height, width = next(iter(pictures.values())).shape[2:]
    # 4 inches per picture; extreme aspect ratios leave room around them instead.
    picture_height = min(max(4 * height / width, 1.5), 8.0)
    figure = Figure(figsize=(4 * len(names), picture_height + 4), dpi=120, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    grid = figure.add_gridspec(2, len(names), height_ratios=(picture_height + 0.6, 3.4))
    for index, name in enumerate(names):
        axes = figure.add_subplot(grid[0, index])
        axes.imshow(pictures[name][0].permute(1, 2, 0).clamp(0, 1).numpy(), interpolation="hanning")
        axes.set_axis_off()
        cost = (
            "the reference"
            if name == comparison.reference
            else f"{times[name]:.2f} x time, {memory[name]:.2f} x memory"
        )
        axes.set_title(f"{name}\n{cost}", fontsize=11, color="#333333")
    axes = figure.add_subplot(grid[1, :])
    for index, name in enumerate(names):
        losses = comparison.modes[name].losses
        style = index % len(COLOURS)
        axes.plot(
            range(1, len(losses) + 1),
            losses,
            color=COLOURS[style],
            linewidth=LINE_WIDTHS[style],
            label=name,
        )
    if all(loss > 0 for name in names for loss in comparison.modes[name].losses):
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(PlainLogFormatter())
        axes.yaxis.set_minor_formatter(PlainLogFormatter())
    axes.set_xlabel("step")
    axes.set_ylabel("objective")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, loc="upper right")  # curves fall
    canvas.draw()  # type: ignore[no-untyped-call]
    pixels = np.asarray(canvas.buffer_rgba())  # type: ignore[no-untyped-call]
    rgb = pixels[..., :3].astype(np.float32) / 255
    return torch.from_numpy(rgb.transpose(2, 0, 1).copy())[None]
