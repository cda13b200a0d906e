"""The regions of a job, from label pictures and masks, and the styles that paint them."""

import logging
from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor

from styletransfer.errors import UserError, about
from styletransfer.job.choices import Blend
from styletransfer.job.job import Job
from styletransfer.job.sources import Sources
from styletransfer.objective.inputs import Region, StylePart, at_layers
from styletransfer.pictures import images
from styletransfer.pictures.regions import Regions, assign, pair_regions
from styletransfer.pictures.transparency import has_margins

logger = logging.getLogger(__name__)

# A region whose weights are all below half of an 8-bit level is left out.
LEAST_OPACITY = 0.5 / 255


def divided(
    blend: Blend, sources: Sources, sizes: Sequence[tuple[int, int]], parts: tuple[StylePart, ...]
) -> tuple[tuple[Region, ...], Tensor | None]:
    """Return the regions of a job, each with the styles that paint it, and the protected pixels.

    `sizes` are the (height, width), in the job, of the content image and of each style image, and
    `parts` are the styles that paint an undivided picture. The protected pixels are a mask
    (1, 1, H, W) in [0, 1], or None. Raises UserError if label pictures or weights do not fit, or if
    nothing is left to paint.
    """
    _check(blend, sources)
    size, *style_sizes = sizes
    regions = [Region(sources=parts)]
    if (labels := sources.content_regions) is not None:
        with about("region_styles"):
            by_region = _by_region(blend, sources.style_regions, style_sizes, labels, parts)
        regions = [
            Region(name, labels.weights(number, size), by_region[number])
            for number, name in enumerate(labels.names)
        ]
    if sources.protected is None:
        return tuple(regions), None
    protected = images.resize(sources.protected, size)
    return _unprotected(regions, protected), protected


def _check(blend: Blend, sources: Sources) -> None:
    """Raise UserError if settings of regions cannot be combined."""
    if sources.content_regions is None:
        for key, there in (
            ("style_regions", sources.style_regions),
            ("region_styles", blend.region_styles),
        ):
            if there and blend.by_groups:
                raise UserError(
                    f"content_regions=auto finds regions of its own; leave {key} out", key
                )
            if there:
                raise UserError(f"{key} needs content_regions, a label picture of the content")
    if not sources.style_regions and not blend.by_groups:
        return
    if blend.region_styles:
        raise UserError("style_regions and region_styles exclude each other; leave one of them out")
    for picture in sources.styles:
        if any(blend.rotation) or has_margins(picture):
            key = "content_regions" if blend.by_groups else "style_regions"
            needs = "content_regions=auto needs" if blend.by_groups else "style_regions need"
            raise UserError(
                f"{needs} {picture.name} without style_rotation and without transparent "
                "margins; turn and crop the file first",
                key,
            )


def _by_region(
    blend: Blend,
    of_styles: Sequence[Regions],
    sizes: Sequence[tuple[int, int]],
    labels: Regions,
    parts: Sequence[StylePart],
) -> list[tuple[StylePart, ...]]:
    """Return, for each region of the content image, the style images that paint it."""
    count = len(sizes) - (blend.layers is not None)
    own = [part for part in parts if part.style < count]
    detail = parts[len(own) :]
    if not of_styles:
        chosen = assign(labels, blend.region_styles, count)
        if count > 1 and blend.weights:
            raise UserError(
                "style_weights blend styles, but here each region has one style; leave them out, "
                "or give style_regions"
            )
        return [(own[number], *detail) for number in chosen]
    pairs, made = pair_regions(labels, of_styles), []
    for region in range(len(labels.names)):
        holding = []  # the style parts that have this region, with the weights of their pixels
        for part in own:
            partner, size = pairs[part.style][region], sizes[part.style]
            if partner is not None:
                weights = of_styles[part.style].weights(partner, size)
                holding.append(replace(part, weights=weights))
        if not holding:
            raise UserError(
                f"the region {labels.described(region)} of {labels.source} is only in styles of "
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


def tell_vanished(job: Job) -> None:
    """Log which regions are too small for which style layers at the coarsest scale.

    Raises UserError if there is neither a content loss nor a match loss, and if at every style
    layer each region, or each of its style parts, is too small.
    """
    layers, scale = list(job.criterion.styles), job.scales[0]
    # The content's pixels are not needed. One pixel is kept, because the content may be large.
    pictures = replace(
        job.pictures, content=job.pictures.content[..., :1, :1], styles=(), start=None
    )
    # Layers at which a region and a style image that paints it there are both large enough.
    seen: set[str] = set()
    for region in pictures.resized(scale.size, scale.style_sizes).regions:
        own, *of_styles = (
            at_layers(job.extractor, weights, layers)
            for weights in (region.weights, *(part.weights for part in region.sources))
        )
        for part, left in zip(region.sources, of_styles, strict=True):
            acting = own if part.layers is None else part.layers
            seen |= {layer for layer in own if layer in left and layer in acting}
        gone = [layer for layer in layers if not all(layer in left for left in (own, *of_styles))]
        if gone:
            logger.warning(
                "the region %s is too small for %s at the coarsest scale, and is left out there",
                region.name or "that is not protected",
                ", ".join(gone),
            )
    if layers and not (job.criterion.contents or job.criterion.matches or seen):
        raise UserError(
            "what is left to paint is too small for every style layer at the coarsest scale, or "
            "its region of the style is; raise size, lower scales, or protect less"
        )
