"""The losses of a run over its steps, drawn on a logarithmic axis as an SVG picture."""

import math
from collections.abc import Sequence
from io import BytesIO

from matplotlib import rc_context
from matplotlib.figure import Figure

from styletransfer.runs.folder import Step

# MOST: largest number of points of a curve; more would not be visible. GREY: colour of text and
# axes, readable on a light and on a dark page.
MOST, GREY = 300, "#7d8794"
# Kind of loss -> (its label, its colour).
KINDS = {
    "total": ("All together", GREY),
    "content": ("Photograph", "#c98026"),
    "style": ("Style", "#3d87e0"),
    "match": ("Strokes where they belong", "#9168dc"),
    "total_variation": ("Smoothness", "#35a061"),
}


def drawn(steps: Sequence[Step]) -> bytes:
    """Return the curves of a run's losses by their kind, with the last values.

    The curve "style" is the sum of the losses "style/relu1_1" and so on. A value that is not finite
    leaves a gap.
    """
    shown = [*steps[: -1 : -(-len(steps) // MOST) or 1], *steps[-1:]]
    places = [one.step for one in shown]
    with rc_context({"svg.fonttype": "none", "text.color": GREY, "font.size": 9}):
        figure = Figure((6, 3.6), layout="constrained")
        axes = figure.subplots()
        for kind, (name, color) in KINDS.items():
            values = [_sum(one, kind) for one in shown]
            if any(value > 0 for value in values):
                label = f"{name} {values[-1]:.3g}"
                axes.semilogy(places, values, color=color, label=label, gid=kind)
        axes.tick_params(which="both", colors=GREY)
        axes.spines[:].set_visible(False)
        axes.grid(alpha=0.3)
        axes.set_xlabel(f"step {places[-1] if places else 0}", color=GREY)
        if axes.lines:
            figure.legend(loc="outside lower center", ncols=2, frameon=False)
        file = BytesIO()
        figure.savefig(file, format="svg", transparent=True)
    return file.getvalue()


def _sum(step: Step, kind: str) -> float:
    losses = [loss for name, loss in step.losses.items() if name.partition("/")[0] == kind]
    return sum(losses) or math.nan
