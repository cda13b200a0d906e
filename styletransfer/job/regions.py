"""The regions of a job and the styles that paint them, from settings."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from styletransfer.errors import UserError, about
from styletransfer.objective.inputs import Region, StylePart
from styletransfer.pictures.images import Picture
from styletransfer.pictures.regions import Regions, assign, pair_regions
from styletransfer.settings import StyleTransferConfig, each

logger = logging.getLogger(__name__)

# A region whose weights are all below half of an 8-bit level is left out.
LEAST_OPACITY = 0.5 / 255


@dataclass(frozen=True)
class Style:
    """A style is a style image, with its regions if it has a label picture."""

    picture: Picture
    regions: Regions | None = None


def make_regions(
    config: StyleTransferConfig,
    styles: Sequence[Style],
    divided: Regions | None,
    size: tuple[int, int],
    protected: Tensor | None,
) -> tuple[Region, ...]:
    """Return the regions of a job, each with the styles that paint it.

    Args:
        config: the settings of the job.
        styles: the style images; the last is that of `style_detail`, if there is one.
        divided: the content's regions, or None without a label picture.
        size: (height, width) of the pastiche.
        protected: (1, 1, H, W) in [0, 1], where no style paints; or None.

    Raises:
        UserError: weights or regions do not fit the styles, or nothing is left to paint.
    """
    with about("style_weights"):
        parts = _blended(config, [style.picture.name for style in styles])
    regions = [Region(sources=parts)]
    if divided is not None:
        with about("region_styles"):
            by_region = _by_region(config, styles, divided, parts)
        regions = [
            Region(name, divided.weights(number, size), by_region[number])
            for number, name in enumerate(divided.names)
        ]
    return tuple(regions) if protected is None else _unprotected(regions, protected)


def _by_region(
    config: StyleTransferConfig,
    styles: Sequence[Style],
    divided: Regions,
    parts: Sequence[StylePart],
) -> list[tuple[StylePart, ...]]:
    """Return, for each region of the content image, the style images that paint it."""
    count = len(styles) - (config.style_detail is not None)
    blend = [part for part in parts if part.style < count]
    detail = parts[len(blend) :]
    of_styles = [style.regions for style in styles[:count] if style.regions is not None]
    if not of_styles:
        chosen = assign(divided, config.region_styles, count)
        if count > 1 and config.style_weights:
            raise UserError(
                "style_weights blend styles, but here each region has one style; leave them out, "
                "or give style_regions"
            )
        return [(blend[number], *detail) for number in chosen]
    pairs, made = pair_regions(divided, of_styles), []
    for region in range(len(divided.names)):
        holding = []  # the styles that have this region, with its weights
        for part in blend:
            partner, size = pairs[part.style][region], styles[part.style].picture.size
            if partner is not None:
                weights = of_styles[part.style].weights(partner, size)
                holding.append(replace(part, weights=weights))
        if not holding:
            raise UserError(
                f"the region {divided.described(region)} of {divided.source} is only in styles of "
                "weight 0; raise one in style_weights"
            )
        made.append((*holding, *detail))
    return made


def _unprotected(regions: Sequence[Region], protected: Tensor) -> tuple[Region, ...]:
    """Remove the protected pixels from each region; a region without other pixels is left out."""
    free = 1.0 - protected
    painted: list[Region] = []
    for region in regions:
        weights = free if region.weights is None else region.weights * free
        if weights.max() >= LEAST_OPACITY:
            painted.append(replace(region, weights=weights))
        elif region.name:
            logger.warning("protect covers the region %s: no style paints there", region.name)
    if not painted:
        problem = "protect covers all there is to paint; paint black where a style may go"
        raise UserError(problem, "protect")
    return tuple(painted)


def _blended(config: StyleTransferConfig, styles: Sequence[str]) -> tuple[StylePart, ...]:
    """Return the style images of weight above 0, then that of `style_detail` at its own layers."""
    if config.style_detail is None:
        return tuple(_weighted(config, styles, layers=None))
    objective, detail = config.objective, set(config.objective.detail_layers)
    matched = objective.match_layers if objective.match_weight else []
    layers = list(dict.fromkeys([*objective.style_layers, *matched]))
    if not detail & set(layers):
        raise UserError(
            "style_detail has no effect: objective.detail_layers names none of the layers at which "
            f"styles act, which are {', '.join(layers)}",
            "style_detail",
        )
    others = [layer for layer in layers if layer not in detail]
    if not others:
        raise UserError(
            "style has no effect: objective.detail_layers names all of the layers at which styles "
            f"act, which are {', '.join(layers)}; leave some to style",
            "objective.detail_layers",
        )
    blend = _weighted(config, styles[:-1], others)
    return (*blend, StylePart(style=len(styles) - 1, layers=sorted(detail)))


def _weighted(
    config: StyleTransferConfig, styles: Sequence[str], layers: list[str] | None
) -> list[StylePart]:
    """Return the style images of weight above 0; their normalised weights sum to 1."""
    weights = config.style_weights or [1.0] * len(styles)
    if len(weights) != len(styles):
        raise UserError(
            f"style_weights holds {len(weights)} numbers but style names {len(styles)} "
            f"({', '.join(styles)}); give one for each"
        )
    if not any(weights):
        raise UserError("style_weights are all 0; give at least one style more than 0")
    largest = max(weights)  # a sum of the weights themselves might overflow
    total = sum(weight / largest for weight in weights)
    shares = [weight / largest / total for weight in weights]
    return [StylePart(n, share, layers=layers) for n, share in enumerate(shares) if share > 0]


def check_scales(config: StyleTransferConfig, styles: int) -> None:
    """Raise UserError unless each setting has one number, or one for each of `styles`."""
    for key in ("style_scale", "style_rotation"):
        if (count := len(each(getattr(config, key)))) not in (1, styles):
            raise UserError(
                f"{key} holds {count} numbers but there are {styles} styles; give one number, or "
                "one for each",
                key,
            )
