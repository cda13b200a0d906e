"""Which style paints where: from settings to the regions of a job."""

import math
from collections.abc import Sequence

from torch import Tensor

from styletransfer.config import StyleTransferConfig, each
from styletransfer.errors import UserError
from styletransfer.objective.pictures import Region, Source

# Of style_scale. Beyond it a style image is a blur, or a few pixels.
SMALLEST_SCALE, LARGEST_SCALE = 0.05, 8.0


def make_regions(
    config: StyleTransferConfig, styles: Sequence[str], protected: Tensor | None
) -> tuple[Region, ...]:
    """Return the regions of a job.

    Args:
        config: the weights of the styles and the layers of their detail.
        styles: names of the style images, with that of `style_detail` last.
        protected: (1, 1, H, W) in [0, 1], where no style paints, or None.

    Raises:
        UserError: weights that do not fit the styles.
    """
    free = None if protected is None else 1 - protected
    return (Region(weights=free, sources=blended(config, styles)),)


def blended(config: StyleTransferConfig, styles: Sequence[str]) -> tuple[Source, ...]:
    """Return all styles with their weights, and the detail of another at its own layers.

    A style of weight 0 is left out, to the very bits.

    Raises:
        UserError: weights that do not fit the styles.
    """
    layers = config.objective.style_layers
    detail = set(config.objective.detail_layers) if config.style_detail is not None else set()
    own = [layer for layer in layers if layer not in detail] if detail else None
    count = len(styles) - (config.style_detail is not None)
    sources = [
        Source(style=number, share=weight, layers=own)
        for number, weight in enumerate(style_weights(config, styles[:count]))
        if weight > 0
    ]
    if detail:
        sources.append(Source(style=count, layers=sorted(detail)))
    return tuple(sources)


def style_weights(config: StyleTransferConfig, styles: Sequence[str]) -> list[float]:
    """Return one weight per style; they add up to 1.

    Raises:
        UserError: not as many weights as styles, one that is negative or not finite, or all 0.
    """
    given = config.style_weights or [1.0] * len(styles)
    if len(given) != len(styles):
        raise UserError(
            f"style_weights holds {len(given)} numbers but style names {len(styles)} "
            f"({', '.join(styles)}); give one for each"
        )
    for weight in given:
        if not 0 <= weight < math.inf:
            raise UserError(f"style_weights holds {weight}; each must be finite, 0 or more")
    if not any(given):
        raise UserError("style_weights are all 0; give at least one style more than 0")
    largest = max(given)  # whose sum might overflow
    total = sum(weight / largest for weight in given)
    return [weight / largest / total for weight in given]


def check_scales(config: StyleTransferConfig, styles: int) -> None:
    """Check that there is one scale and one rotation, or one for each style.

    Raises:
        UserError: there are not, or one is out of range.
    """
    for key in ("style_scale", "style_rotation"):
        if (given := len(each(getattr(config, key)))) not in (1, styles):
            raise UserError(
                f"{key} holds {given} numbers but there are {styles} styles; give one number, or "
                "one for each"
            )
    for factor in each(config.style_scale):
        if not SMALLEST_SCALE <= factor <= LARGEST_SCALE:
            raise UserError(
                f"style_scale={factor} must be from {SMALLEST_SCALE} to {LARGEST_SCALE}: the "
                "style image's longer side over the pastiche's"
            )
    for degrees in each(config.style_rotation):
        if not math.isfinite(degrees):
            raise UserError(f"style_rotation={degrees} must be a number of degrees")
