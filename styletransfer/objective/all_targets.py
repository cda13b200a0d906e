"""Computes all targets of an objective: of content, match and style losses, and of calm places."""

from collections.abc import Sequence

import torch

from styletransfer.features.extractor import FeatureExtractor
from styletransfer.objective.calm import calm_regions
from styletransfer.objective.criterion import SEARCHED, Criterion
from styletransfer.objective.inputs import Inputs, Region
from styletransfer.objective.matching import is_searched, match_targets, searches
from styletransfer.objective.reader import KeepingReader, Reader, WholeReader
from styletransfer.objective.repetition import ELSEWHERE, IN_CALM, repeated
from styletransfer.objective.targets import Targets, content_targets, style_targets
from styletransfer.pictures.images import size_of


@torch.no_grad()
def all_targets(
    criterion: Criterion, reader: Reader, pictures: Inputs, styles: Targets | None
) -> Targets:
    """Return all targets; `styles` are the style targets, or None to compute them."""
    if styles is None:
        styles = _style_targets(criterion, reader, pictures, pictures.regions, ELSEWHERE)
    found = searches(criterion, reader, pictures)
    kinds = [
        content_targets(criterion, reader, pictures.content),
        match_targets(criterion, reader.extractor, found, size_of(pictures.content)),
        styles,
    ]
    if found:  # calm places, such as a clear sky, have additional style losses
        matches = next(iter(found.values()))
        calm = calm_regions(pictures, matches.calm, matches.freedom)
        kinds.append(_style_targets(criterion, reader, pictures, calm, IN_CALM))
    return {
        layer: [target for kind in kinds for target in kind.get(layer, [])]
        for layer in reader.extractor.layers
        if any(layer in kind for kind in kinds)
    }


@torch.no_grad()
def style_targets_of(
    extractor: FeatureExtractor, criterion: Criterion, pictures: Inputs
) -> Targets:
    """Return the targets of the style losses of an `Objective`, for its argument `styles`."""
    reader = WholeReader(extractor, criterion.measure.with_mean)
    return _style_targets(criterion, reader, pictures, pictures.regions, ELSEWHERE)


def _style_targets(
    criterion: Criterion, reader: Reader, pictures: Inputs, regions: Sequence[Region], large: float
) -> Targets:
    """Return style targets; `large` is a factor on the losses at relu5_1, see `repeated`."""
    regions = repeated(regions, pictures.repetitions, criterion.styles, large)
    return style_targets(criterion, reader, pictures.styles, regions)


def whole_reader(
    extractor: FeatureExtractor, criterion: Criterion, pictures: Inputs
) -> WholeReader:
    """Return a reader. With match losses, it caches the features that several losses read."""
    with_mean = criterion.measure.with_mean
    if not criterion.matches:
        return WholeReader(extractor, with_mean)
    kept = [(pictures.content, {*criterion.contents})]
    kept += [(style, {*criterion.styles, *criterion.matches}) for style in pictures.styles]
    for image, layers in kept:
        if is_searched(pictures, image):
            layers.update(SEARCHED)
    return KeepingReader(extractor, with_mean, kept)
