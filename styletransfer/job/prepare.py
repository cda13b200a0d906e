"""Turns settings into a job: loads and checks everything that a style transfer needs."""

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from styletransfer.copying.paired import fits
from styletransfer.errors import about
from styletransfer.job.choices import Choices
from styletransfer.job.groups import grouped
from styletransfer.job.job import Job
from styletransfer.job.memory import check_room, plan_memory
from styletransfer.job.regions import divided, tell_vanished
from styletransfer.job.scales import for_each
from styletransfer.job.sources import Sources, check_side
from styletransfer.objective import check_size
from styletransfer.objective.inputs import Inputs
from styletransfer.pictures import images
from styletransfer.pictures.images import Picture
from styletransfer.pictures.margins import crop_margins
from styletransfer.pictures.rotate import rotated
from styletransfer.pictures.transparency import crop_transparent, fill_transparent
from styletransfer.settings import StyleTransferConfig
from styletransfer.system.outputs import check_outputs

logger = logging.getLogger(__name__)


def prepare(
    config: StyleTransferConfig,
    given: Mapping[str, Any] | None = None,
    *,
    outputs: Sequence[Path] = (),
    enlarge: bool = True,
    search: bool = True,
    progress: bool = False,
    like: Job | None = None,
) -> Job:
    """Return the job of `config`, loaded and checked; raise UserError if the job would fail.

    `given` maps settings to pictures in memory, which replace files. `outputs` are the files that
    will be written, in addition to `config.output`; no input may be one of them. Without `enlarge`,
    as for a plan, small pictures keep their size, and nothing is searched. Without `search`, no
    pixels are matched for paired painting; with `progress`, a bar shows this search. The network of
    the job `like` is used again if `config` describes the same network.
    """
    choices = Choices.of(config)  # first, because it finds errors before a picture is read
    written = [Path(config.output)] if config.output else []
    check_outputs([*written, *outputs], choices.files)  # before a picture is read
    if config.output is not None:
        images.check_writable(config.output)
    sources = Sources.read(config, choices.pyramid, given)
    if config.output is not None:
        images.check_writable(config.output, choices.pyramid.pastiche(sources.content.size))
    pictures = load(choices, sources, enlarge=enlarge)
    if like is not None and like.network == choices.network:
        extractor = like.extractor
    else:
        extractor = choices.network.build()
    job = choices.job(extractor, pictures)
    if choices.blend.by_groups and enlarge:
        job = replace(job, pictures=replace(pictures, regions=grouped(job, len(sources.styles))))
    sizes = (job.scales[0].size, *job.scales[0].style_sizes)
    for size, name in zip(sizes, pictures.names, strict=True):
        check_size(job.extractor, size, Path(name).name)
    if any(region.weights is not None for region in job.pictures.regions):
        tell_vanished(job)
    pairs = zip(pictures.sources, pictures.styles, pictures.names[1:], strict=False)
    for source, style, name in pairs:
        if not fits(job.extractor, job.on_device(source), job.on_device(style)):
            logger.warning("%s seems to show something else than its style_source", name)
    plan_memory(job, job.scales[-1], math.inf)  # raises UserError if the tile is not allowed
    if job.tile and job.tile >= max(job.scales[-1].size):
        logger.warning("tile=%d has no effect: the whole picture is no larger", job.tile)
    job = job.repeating() if enlarge else job
    return job.corresponding(progress=progress) if enlarge and search else job


def load(choices: Choices, sources: Sources, *, enlarge: bool = True) -> Inputs:
    """Return the pictures of a job, at the sizes of its finest scale.

    A style's transparent and uniform margins are cut off. In each picture, visible colours spread
    into the remaining transparent pixels, so that no invisible colour enters a statistic.

    Without `enlarge`, as for a dry run, pictures smaller than the pastiche keep their size.

    Raises UserError if a picture is fully transparent or too small, if the pictures exceed the free
    memory, or if style weights, scales or rotations, regions or masks do not fit.
    """
    photo, side = sources.content, choices.pyramid.side
    styles = _turned_styles(choices, sources)
    factors = choices.pyramid.factors(len(styles))
    for picture, key in ((photo, "content"), *((style, "style") for style in styles)):
        check_side(picture, key)
    if enlarge:
        check_room(choices, photo.size, len(styles))
        photo = replace(photo, rgb=photo.rgb.contiguous())
    if max(photo.size) < side:
        height, width = photo.size
        logger.info("%s: enlarged from %d x %d pixels", photo.name, width, height)
    content = _fitted(photo, side, enlarge)
    filled = fill_transparent(content)  # raises UserError if no pixel is visible
    styles = [
        choices.colors.of_style(_fitted(style, max(1, round(factor * side)), enlarge), content)
        for style, factor in zip(styles, factors, strict=True)
    ]
    photos = [
        images.resize(photo.rgb, style.size)
        for photo, style in zip(_turned(choices, sources.painted_from), styles, strict=False)
    ]
    names = tuple(picture.name for picture in (content, *styles))
    with about("style_weights"):
        parts = choices.blend.parts(names[1:])
    sizes = [picture.size for picture in (content, *styles)]
    regions, protected = divided(choices.blend, sources, sizes, parts)
    return Inputs(
        content=filled,
        styles=tuple(map(fill_transparent, styles)),
        sources=tuple(photos),
        regions=regions,
        protected=protected,
        start=None if sources.start is None else fill_transparent(sources.start),
        alpha=content.alpha,
        names=names,
    )


def _turned_styles(choices: Choices, sources: Sources) -> Sequence[Picture]:
    """Return the style images, rotated, then `style_detail`; their margins are cut off.

    The style images keep uniform margins if they have or get label pictures, or if they have
    photographs, because these correspond to them pixel by pixel.
    """
    styles = list(map(crop_transparent, sources.styles))
    if not (sources.style_regions or sources.painted_from or choices.blend.by_groups):
        styles = list(map(crop_margins, styles))
    styles = _turned(choices, styles)
    if sources.detail is not None:
        styles.append(crop_margins(crop_transparent(sources.detail)))
    return styles


def _turned(choices: Choices, pictures: Sequence[Picture]) -> list[Picture]:
    """Return style images, or their photographs, rotated by `style_rotation`."""
    angles = for_each("style_rotation", choices.blend.rotation, len(pictures)) if pictures else []
    return [rotated(one, by) if by else one for one, by in zip(pictures, angles, strict=True)]


def _fitted(picture: Picture, side: int, enlarge: bool) -> Picture:
    return images.resize_picture(picture, side if enlarge else min(side, max(picture.size)))
