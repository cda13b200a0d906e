"""The losses of a run over its steps, laid out as the lines of a figure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from styletransfer.runs.folder import Step

# In units of the figure: all of it, and where its lines are.
WIDTH, HEIGHT = 320, 180
LEFT, RIGHT, TOP, BOTTOM = 52, 312, 10, 156
POINTS = 200
"""Points of a line at most; more are not seen."""
DECADES = 4
"""Losses are drawn this far below the highest one; what is lower lies on the ground."""


@dataclass(frozen=True)
class Curve:
    """What the template draws.

    Attributes:
        lines: name -> corners as SVG has them, "x,y x,y"; the total comes first.
        scales: x where a finer scale begins.
        levels: loss -> y of the powers of ten, or of both ends where fewer than two are in sight.
        last: the number of the last step.
    """

    lines: dict[str, str]
    scales: list[float]
    levels: dict[str, float]
    last: int


def lay_out_curve(steps: Sequence[Step]) -> Curve | None:
    """Return the curve of a run, on a logarithmic scale; None if there is nothing to draw."""
    seen = [value for step in steps for value in step.losses.values() if value > 0]
    if len(steps) < 2 or not seen:
        return None
    high = math.log10(max(seen))
    low = max(math.log10(min(seen)), high - DECADES)
    span, first, last = high - low or 1.0, steps[0].step, steps[-1].step

    def x(step: Step) -> float:
        return LEFT + (RIGHT - LEFT) * (step.step - first) / max(last - first, 1)

    def y(loss: float) -> float:
        height = (math.log10(loss) - low) / span if loss > 0 else 0.0
        return BOTTOM - (BOTTOM - TOP) * max(height, 0.0)

    every = math.ceil(len(steps) / POINTS)
    drawn = [*steps[:-1:every], steps[-1]]
    names = dict.fromkeys(name for step in drawn for name in step.losses)
    lines = {
        name: " ".join(
            f"{x(step):.1f},{y(step.losses[name]):.1f}" for step in drawn if name in step.losses
        )
        for name in names
    }
    powers = [10.0**power for power in range(math.ceil(low), math.floor(high) + 1)]
    marks = powers if len(powers) > 1 else [10**low, 10**high]
    return Curve(
        lines=lines,
        scales=[x(after) for before, after in pairwise(steps) if after.scale != before.scale],
        levels={f"{mark:.3g}": y(mark) for mark in marks},
        last=last,
    )
