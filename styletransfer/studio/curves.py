"""The losses of a run over its steps, drawn on a logarithmic axis as an SVG picture."""

import math
from collections.abc import Mapping, Sequence

# Sides in the picture's own units; points of a line, as more would not be seen; decades at most.
WIDTH, HEIGHT, MOST, DECADES = 420, 180, 300, 6
# Kind of loss -> what it is called, its colour on light and on dark pages.
KINDS = {
    "total": ("All together", "#1f2937", "#e5e9ef"),
    "content": ("Photograph", "#9a5b06", "#f0b45c"),
    "style": ("Style", "#0f63c8", "#6aaef7"),
    "match": ("Strokes where they belong", "#6d28d9", "#b79df8"),
    "total_variation": ("Smoothness", "#14753f", "#5cc98a"),
    "temporal": ("Frames are alike", "#14753f", "#5cc98a"),
}
LOOK = """text { font: 12px system-ui, "DejaVu Sans", sans-serif; fill: #5b6472 }
polyline { fill: none; stroke-width: 1.6 } .level { stroke: #dfe3e8 }
@media (prefers-color-scheme: dark) { text { fill: #a3adba } .level { stroke: #2b333d } }
"""


def drawn(losses: Sequence[tuple[int, Mapping[str, float | None]]]) -> str:
    """Return the curves of (step, kind -> loss), which have the last values below them.

    Each kind has a colour for light pages and one for dark ones. What is not above 0, or is
    missing, is left out.
    """
    every = -(-len(losses) // MOST) or 1
    shown = [*losses[:-1:every], *losses[-1:]]
    positive = [loss for _, kinds in shown for loss in kinds.values() if loss and loss > 0]
    if len(shown) < 2 or not positive:
        return _svg(30, '<text y="20">They appear as soon as something is painted.</text>')
    high = math.log10(max(positive)) + 0.05
    low = max(math.log10(min(positive)) - 0.1, high - DECADES)
    last, latest = shown[-1]

    def y(loss: float) -> float:
        return round(HEIGHT * (high - math.log10(loss)) / (high - low), 1)

    parts = []
    for level in (10.0**power for power in range(math.ceil(low), math.ceil(high))):
        parts.append(f'<path class="level" d="M0 {y(level)}H{WIDTH}"/>')
        parts.append(f'<text y="{y(level) - 3}">{level:g}</text>')
    parts.append(f'<text x="{WIDTH}" y="{HEIGHT + 14}" text-anchor="end">step {last}</text>')
    kinds = [kind for kind in KINDS if kind in latest]
    for place, kind in enumerate(kinds):
        points = " ".join(
            f"{WIDTH * (step - 1) / (last - 1):.1f},{y(loss)}"
            for step, values in shown
            if (loss := values.get(kind)) and loss > 10**low
        )
        x, below = WIDTH // 2 * (place % 2), HEIGHT + 40 + 22 * (place // 2)
        number = "" if latest[kind] is None else f"{latest[kind]:.3g}"
        parts.append(f'<polyline class="{kind}" points="{points}"/>')
        parts.append(f'<polyline class="{kind}" points="{x},{below - 4} {x + 14},{below - 4}"/>')
        parts.append(f'<text x="{x + 20}" y="{below}">{KINDS[kind][0]} {number}</text>')
    return _svg(HEIGHT + 30 + 22 * math.ceil(len(kinds) / 2), "".join(parts))


def _svg(height: int, inside: str) -> str:
    light, dark = (
        " ".join(f".{kind} {{ stroke: {colors[at]} }}" for kind, colors in KINDS.items())
        for at in (1, 2)
    )
    style = f"{light}{LOOK}@media (prefers-color-scheme: dark) {{ {dark} }}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}">'
    return f"{head}<style>{style}</style>{inside}</svg>"
