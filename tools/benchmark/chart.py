"""A benchmark as one picture: time over plain's as bars, and time over pixels."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from tools.benchmark.results import Benchmark, Row

PLAIN_COLOUR = "#333333"
# One colour per loss mode; a precision below float32 is drawn lighter, tiles hatched or dashed.
COLOURS = {
    "fake_backward": "#d98b5f",
    "loss_attribute": "#2f5d8a",
    "autograd_function": "#6aa87f",
}


def draw(benchmark: Benchmark, path: Path) -> None:
    """Write the picture as a PNG file to `path`."""
    figure = Figure(figsize=(12, 5), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    bars, lines = figure.subplots(1, 2)
    _bars(bars, [row for row in benchmark.rows if row.time_ratio is not None])
    _lines(lines, benchmark.rows)
    for axes in (bars, lines):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, format="png")


def _bars(axes: Axes, rows: list[Row]) -> None:
    """Draw one bar per row at the largest size that plain was run at."""
    if not rows:
        axes.set_axis_off()
        axes.set_title("plain was not run")
        return
    size = max(row.size for row in rows)
    rows = [row for row in rows if row.size == size][::-1]
    for place, row in enumerate(rows):
        ratio = row.time_ratio
        assert ratio is not None
        axes.barh(
            place,
            ratio.median,
            xerr=[[ratio.median - ratio.lower], [ratio.upper - ratio.median]],
            color=_colour(row),
            alpha=_alpha(row),
            hatch="//" if row.tile else None,
            edgecolor="white",
        )
        axes.annotate(
            f"{ratio.median:.2f}",
            (ratio.upper, place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
        )
    axes.set_yticks(range(len(rows)), [row.name for row in rows])
    axes.set_xlabel("time of one evaluation, plain = 1")
    axes.set_title(f"{size} x {size} pixels")
    axes.margins(x=0.12)


def _lines(axes: Axes, rows: list[Row]) -> None:
    """Draw one line per row's name over its sizes."""
    for name in dict.fromkeys(row.name for row in rows):
        mine = sorted((row for row in rows if row.name == name), key=lambda row: row.size)
        axes.loglog(
            [row.size**2 for row in mine],
            [row.seconds.median for row in mine],
            color=_colour(mine[0]),
            alpha=_alpha(mine[0]),
            linestyle="--" if mine[0].tile else "-",
            marker="o",
            markersize=4,
            label=name,
        )
    sizes = sorted({row.size for row in rows})
    axes.set_xticks([size**2 for size in sizes], [f"{size}²" for size in sizes])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("pixels")
    axes.set_ylabel("seconds per evaluation")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize=8, loc="upper left")  # lines rise


def _colour(row: Row) -> str:
    return COLOURS.get(row.name.split()[0], PLAIN_COLOUR)


def _alpha(row: Row) -> float:
    return 0.55 if row.precision == "bfloat16" else 1.0
