"""The losses of a run over its steps, drawn on a logarithmic axis as an SVG picture."""

from collections.abc import Mapping, Sequence
from io import BytesIO

from matplotlib import rc_context
from matplotlib.figure import Figure

# Points of a line at most, as more would not be seen; and what reads well on light and on dark.
MOST, GREY = 300, "#7d8794"
# Kind of loss -> what it is called, and its colour.
KINDS = {
    "total": ("All together", GREY),
    "content": ("Photograph", "#c98026"),
    "style": ("Style", "#3d87e0"),
    "match": ("Strokes where they belong", "#9168dc"),
    "total_variation": ("Smoothness", "#35a061"),
}


def drawn(losses: Sequence[tuple[int, Mapping[str, float | None]]]) -> bytes:
    """Return the curves of (step, kind -> loss), with the last values; None leaves a gap."""
    shown = [*losses[: -1 : -(-len(losses) // MOST) or 1], *losses[-1:]]
    steps = [step for step, _ in shown]
    with rc_context({"svg.fonttype": "none", "text.color": GREY, "font.size": 9}):
        figure = Figure((6, 3.6), layout="constrained")
        axes = figure.subplots()
        for kind, (name, color) in KINDS.items():
            values = [loss if (loss := all.get(kind)) else float("nan") for _, all in shown]
            if any(value > 0 for value in values):
                label = f"{name} {values[-1]:.3g}"
                axes.semilogy(steps, values, color=color, label=label, gid=kind)
        axes.tick_params(which="both", colors=GREY)
        axes.spines[:].set_visible(False)
        axes.grid(alpha=0.3)
        axes.set_xlabel(f"step {steps[-1] if steps else 0}", color=GREY)
        if axes.lines:
            figure.legend(loc="outside lower center", ncols=2, frameon=False)
        file = BytesIO()
        figure.savefig(file, format="svg", transparent=True)
    return file.getvalue()
