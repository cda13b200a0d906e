"""Which style paints where: from settings to the regions of a job."""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from styletransfer.config import StyleTransferConfig, each
from styletransfer.errors import UserError
from styletransfer.objective.inputs import Region, StylePart
from styletransfer.pictures.images import Picture
from styletransfer.pictures.pairing import assign, pair_regions
from styletransfer.pictures.regions import Regions

logger = logging.getLogger(__name__)

# Of style_scale. Beyond it a style image is a blur, or a few pixels.
SMALLEST_SCALE, LARGEST_SCALE = 0.05, 8.0


@dataclass(frozen=True)
class Style:
    """A style image.

    Attributes:
        picture: itself.
        regions: its regions, or None for one that is not divided.
    """

    picture: Picture
    regions: Regions | None = None


def make_regions(
    config: StyleTransferConfig,
    styles: Sequence[Style],
    divided: Regions | None,
    size: tuple[int, int],
    protected: Tensor | None,
) -> tuple[Region, ...]:
    """Return the regions of a job.

    Args:
        config: the weights of the styles, the layers of their detail, and which style goes where.
        styles: at the pastiche's scale, with that of `style_detail` last.
        divided: the content's regions, or None for one that is not divided.
        size: height and width of the pastiche.
        protected: (1, 1, H, W) in [0, 1], where no style paints, or None.

    Raises:
        UserError: weights or regions that do not fit the styles, or nothing is left to paint.
    """
    sources = blended(config, [style.picture.name for style in styles])
    if divided is None:
        regions = [Region(sources=sources)]
    else:
        regions = [
            Region(name, divided.weights(number, size), theirs)
            for number, (name, theirs) in enumerate(
                zip(divided.names, _by_region(config, styles, divided, sources), strict=True)
            )
        ]
    return tuple(regions) if protected is None else _unprotected(regions, protected)


def _by_region(
    config: StyleTransferConfig,
    styles: Sequence[Style],
    divided: Regions,
    sources: tuple[StylePart, ...],
) -> list[tuple[StylePart, ...]]:
    """Return for each region of the content what its style is made of."""
    count = len(styles) - (config.style_detail is not None)
    own = [source for source in sources if source.style < count]
    detail = tuple(source for source in sources if source.style >= count)
    held = [style.regions for style in styles[:count] if style.regions is not None]
    if held:
        found = _paired(styles, own, divided, pair_regions(divided, held))
        return [(*theirs, *detail) for theirs in found]
    chosen = assign(divided, config.region_styles, count)
    if count > 1 and config.style_weights:
        raise UserError(
            "style_weights blend styles, but here each region has one style; leave them out, or "
            "give style_regions"
        )
    return [(own[number], *detail) for number in chosen]


def _paired(
    styles: Sequence[Style],
    own: Sequence[StylePart],
    divided: Regions,
    pairs: list[list[int | None]],
) -> list[tuple[StylePart, ...]]:
    """Return for each region the styles that hold it, each with the place where it does."""
    found: list[tuple[StylePart, ...]] = []
    for region in range(len(divided.names)):
        theirs = []
        for source in own:
            place, style = pairs[source.style][region], styles[source.style]
            if place is not None and style.regions is not None:
                weights = style.regions.weights(place, style.picture.size)
                theirs.append(replace(source, weights=weights))
        if not theirs:
            raise UserError(
                f"the region {divided.described(region)} of {divided.source} is only in styles of "
                "weight 0; raise one in style_weights"
            )
        found.append(tuple(theirs))
    return found


def _unprotected(regions: Sequence[Region], protected: Tensor) -> tuple[Region, ...]:
    """Take from each region what is protected; one of which nothing is left is left out."""
    free = 1.0 - protected
    kept: list[Region] = []
    for region in regions:
        weights = free if region.weights is None else region.weights * free
        if weights.max() >= 0.5 / 255.0:
            kept.append(replace(region, weights=weights))
        elif region.name:
            logger.warning("protect covers the region %s: no style paints there", region.name)
    if not kept:
        raise UserError("protect covers all there is to paint; paint black where a style may go")
    return tuple(kept)


def blended(config: StyleTransferConfig, styles: Sequence[str]) -> tuple[StylePart, ...]:
    """Return all styles with their weights, and the detail of another at its own layers.

    A style of weight 0 is left out, to the very bits.

    Raises:
        UserError: weights that do not fit the styles, or a detail that no layer listens to.
    """
    layers = config.objective.style_layers
    detail = set(config.objective.detail_layers) if config.style_detail is not None else set()
    if config.style_detail is not None and not detail & set(layers):
        raise UserError(
            "style_detail is heard nowhere: objective.detail_layers names none of "
            f"objective.style_layers, which are {', '.join(layers)}"
        )
    own = [layer for layer in layers if layer not in detail] if detail else None
    count = len(styles) - (config.style_detail is not None)
    sources = [
        StylePart(style=number, share=weight, layers=own)
        for number, weight in enumerate(style_weights(config, styles[:count]))
        if weight > 0
    ]
    if detail:
        sources.append(StylePart(style=count, layers=sorted(detail)))
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
