"""What is compared: losses as plain differentiable functions, which know no mode and no tile.

A new style loss is a file with a statistic of two moments, and a line here.
"""

from styletransfer.errors import UserError
from styletransfer.losses.squares import content_loss, mean_square, temporal_loss, total_variation
from styletransfer.losses.style import GRAM, MOMENTS, WASSERSTEIN, StyleMeasure

__all__ = [
    "GRAM",
    "STYLE_LOSSES",
    "StyleMeasure",
    "content_loss",
    "get_style_loss",
    "mean_square",
    "temporal_loss",
    "total_variation",
]

STYLE_LOSSES: dict[str, StyleMeasure] = {
    measure.name: measure for measure in (GRAM, MOMENTS, WASSERSTEIN)
}


def get_style_loss(name: str) -> StyleMeasure:
    """Return the style loss called `name` (UserError: there is no such loss)."""
    if name not in STYLE_LOSSES:
        raise UserError(
            f"unknown objective.style_loss {name!r}; choose one of {', '.join(STYLE_LOSSES)}"
        )
    return STYLE_LOSSES[name]
