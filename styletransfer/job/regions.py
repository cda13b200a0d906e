"""The regions of a job, read from label pictures and masks, and the styles that paint them."""

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from styletransfer.errors import UserError, about
from styletransfer.job import Job
from styletransfer.objective.inputs import Region, StylePart, at_layers
from styletransfer.pictures import images, in_folder
from styletransfer.pictures.images import Picture
from styletransfer.pictures.regions import (
    Regions,
    assign,
    check_aspect,
    pair_regions,
    read_mask,
    read_regions,
)
from styletransfer.settings import StyleTransferConfig, each

logger = logging.getLogger(__name__)

# A region whose weights are all below half of an 8-bit level is left out.
LEAST_OPACITY = 0.5 / 255


def divided(
    config: StyleTransferConfig,
    given: Mapping[str, Any],
    originals: Sequence[Picture],
    sizes: Sequence[tuple[int, int]],
    parts: tuple[StylePart, ...],
) -> tuple[tuple[Region, ...], Tensor | None]:
    """Return the regions of a job, each with the styles that paint it, and the protected pixels.

    Args:
        config: the settings of the job.
        given: setting -> label picture or mask in memory, which replaces its file.
        originals: the content image and the style images (`style`) as they were read.
        sizes: (height, width) of these images in the job, and of the `style_detail` image.
        parts: the styles that paint an undivided picture.

    Raises:
        UserError: label pictures, masks or weights do not fit, or nothing is left to paint.
    """
    content, *styles = originals
    size, *style_sizes = sizes
    labels = _content_regions(config, given, content)
    of_styles = _style_regions(config, given, styles)
    with about("protect"):
        protected = _protected(config, given, content, size)
    regions = [Region(sources=parts)]
    if labels is not None:
        with about("region_styles"):
            by_region = _by_region(config, of_styles, style_sizes, labels, parts)
        regions = [
            Region(name, labels.weights(number, size), by_region[number])
            for number, name in enumerate(labels.names)
        ]
    return (tuple(regions) if protected is None else _unprotected(regions, protected)), protected


def _content_regions(
    config: StyleTransferConfig, given: Mapping[str, Any], content: Picture
) -> Regions | None:
    """Return the regions of the content image, or None if it has none.

    UserError: the label picture cannot be read, or is missing and other keys need it.
    """
    source = given.get("content_regions", config.content_regions)
    if source is None:
        for key in ("style_regions", "region_styles"):
            if key in given or getattr(config, key):
                raise UserError(f"{key} needs content_regions, a label picture of the content")
        return None
    with about("content_regions"):
        regions = read_regions(source, "content_regions")
        _check_regions(regions, content)
    return regions


def _style_regions(
    config: StyleTransferConfig, given: Mapping[str, Any], paintings: Sequence[Picture]
) -> list[Regions]:
    """Return the regions of each style image, or an empty list.

    UserError: a label picture cannot be read, or does not fit its style image.
    """
    source, styles = given.get("style_regions", config.style_regions), len(paintings)
    if source is None:
        return []
    if config.region_styles:
        raise UserError("style_regions and region_styles exclude each other; leave one of them out")
    is_folder = isinstance(source, str) and os.path.isdir(source)
    named = in_folder(source) if is_folder else each(source)
    if (count := len(named)) != styles:
        raise UserError(
            f"style_regions names {count} label picture{'s' * (count != 1)}, and style {styles} "
            f"image{'s' * (styles != 1)}; give one for each, in their order, as a list in brackets"
        )
    names = [f"style_regions {n}" for n in range(1, count + 1)] if styles > 1 else ["style_regions"]
    found, is_turned = [], any(each(config.style_rotation))
    for picture, each_source, name in zip(paintings, named, names, strict=True):
        if is_turned or images.crop_transparent(picture).size != picture.size:
            raise UserError(
                f"style_regions need {picture.name} without style_rotation and without transparent "
                "margins; turn and crop both files first",
                "style_regions",
            )
        regions = read_regions(each_source, name)
        _check_regions(regions, picture)
        found.append(regions)
    return found


def _check_regions(regions: Regions, picture: Picture) -> None:
    """Check the aspect ratio of a label picture, and log its regions in one line."""
    check_aspect(regions.size, picture.size, regions.source)
    uncovered = 100 * (1 - sum(regions.shares))
    rest = f"; {uncovered:.2g} % of the picture is in no region" if uncovered > 0.1 else ""
    logger.info("%s: %s%s", regions.source, regions.listed(), rest)


def _protected(
    config: StyleTransferConfig, given: Mapping[str, Any], content: Picture, size: tuple[int, int]
) -> Tensor | None:
    """Return the mask (1, 1, H, W) in [0, 1] of the protected pixels, or None without one."""
    source = given.get("protect", config.protect)
    if source is None:
        return None
    mask = read_mask(source, "protect")
    name = f"protect={source}" if isinstance(source, str) else "protect"
    check_aspect((mask.shape[2], mask.shape[3]), content.size, name)
    return images.resize(mask, size)


def _by_region(
    config: StyleTransferConfig,
    of_styles: Sequence[Regions],
    sizes: Sequence[tuple[int, int]],
    labels: Regions,
    parts: Sequence[StylePart],
) -> list[tuple[StylePart, ...]]:
    """Return, for each region of the content image, the style images that paint it."""
    count = len(sizes) - (config.style_detail is not None)
    blend = [part for part in parts if part.style < count]
    detail = parts[len(blend) :]
    if not of_styles:
        chosen = assign(labels, config.region_styles, count)
        if count > 1 and config.style_weights:
            raise UserError(
                "style_weights blend styles, but here each region has one style; leave them out, "
                "or give style_regions"
            )
        return [(blend[number], *detail) for number in chosen]
    pairs, made = pair_regions(labels, of_styles), []
    for region in range(len(labels.names)):
        holding = []  # the styles that have this region, with its weights
        for part in blend:
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
    """Log which regions are too small for which layers at the coarsest scale.

    UserError: all regions are too small for all style layers, and there is no other loss.
    """
    layers, scale = list(job.criterion.styles), job.scales[0]
    # The content itself, which may be large, is not needed.
    pictures = replace(
        job.pictures, content=job.pictures.content[..., :1, :1], styles=(), start=None
    )
    seen: set[str] = set()  # the layers at which any region is painted
    for region in pictures.resized(scale.size, scale.style_sizes).regions:
        own, *of_styles = (
            at_layers(job.extractor, weights, layers)
            for weights in (region.weights, *(part.weights for part in region.sources))
        )
        seen |= own.keys()
        gone = [layer for layer in layers if not all(layer in left for left in (own, *of_styles))]
        if gone:
            logger.warning(
                "the region %s is too small for %s at the coarsest scale, and is left out there",
                region.name or "that is not protected",
                ", ".join(gone),
            )
    if layers and not (job.criterion.contents or job.criterion.matches or seen):
        raise UserError(
            "what is left to paint is too small for every style layer at the coarsest scale; "
            "raise size, lower scales, or protect less"
        )
