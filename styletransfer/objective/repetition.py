"""Repetition: which places of a style image occur in it more than once.

One position of relu5_1 sees 156 x 156 pixels, which holds whole objects. The stars of *The Starry
Night*, flowers and waves occur many times in their picture, so the pastiche may show them anywhere.
A face occurs once, and pieces of it must not appear in a sky. So at this layer the style losses
compare the pastiche with the repeated places of the style alone, and count less if there are few.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import normalize

from styletransfer.features.extractor import FeatureExtractor
from styletransfer.features.tensors import to_float64
from styletransfer.objective.inputs import Region, Repetition
from styletransfer.pictures.images import long_enough, resize, scaled_size, size_of

# The layer whose style losses compare large shapes.
LARGE = "relu5_1"
# A style image is resized to SIDE pixels along its longer side, or larger, so that its shorter side
# has at least LEAST. So the result hardly depends on the size of the style image in the run.
SIDE, LEAST = 384, 64
# Each position is compared with those that are at least APART rows or columns away, so that an
# object is not compared with itself.
APART = 5
# Features are compared by their cosine, after their mean is subtracted. A position has weight 0
# (unique) if its largest cosine is at most UNIQUE, and weight 1 (repeated) if it is at least
# REPEATED. Between the two the weight rises linearly.
UNIQUE, REPEATED = 0.35, 0.5
# The strength of a style is 1 if the mean weight of its positions, see `repetition`, is at least
# ENOUGH. Below, it falls linearly to 0.
ENOUGH = 0.3
# Factors on style losses at LARGE: ELSEWHERE for whole regions, IN_CALM for the additional losses
# of calm places. Large shapes look right in skies, but in other places they would cover eyes.
ELSEWHERE, IN_CALM = 0.4, 2.0


@torch.no_grad()
def repetition(extractor: FeatureExtractor, style: Tensor) -> Repetition:
    """Return which places of a style image (1, 3, H, W) are repeated in it.

    The weight of a position rises from 0 to 1 with its largest cosine with positions far from it
    (UNIQUE, REPEATED). The strength rises with the mean weight (ENOUGH). Positions whose features
    are near the mean, as in an empty sky, hardly count in that mean.
    """
    size = scaled_size(size_of(style), long_enough(size_of(style), SIDE, LEAST))
    seen = extractor(resize(style, size), [LARGE])[LARGE]
    height, width = seen.shape[2:]
    features = to_float64(seen)[0].flatten(1).mT
    features = features - features.mean(0)
    unit = normalize(features)
    row, column = (
        (axis[:, None] - axis).abs().to(unit.device)  # distances between positions along one axis
        for axis in torch.cartesian_prod(torch.arange(height), torch.arange(width)).unbind(1)
    )
    near = row.maximum(column) < APART
    largest = (unit @ unit.mT).masked_fill(near, -1).amax(1)
    weights = ((largest - UNIQUE) / (REPEATED - UNIQUE)).clamp(0, 1)
    energy = features.square().sum(1)
    mean = float((weights * energy).sum() / energy.sum().clamp_min(1e-12))
    return Repetition(weights.to(style).view(1, 1, height, width), min(1.0, mean / ENOUGH))


def repeated(
    regions: Sequence[Region],
    repetitions: Sequence[Repetition],
    layers: Collection[str],
    factor: float,
) -> list[Region]:
    """Return regions whose styles are used at the layer LARGE only in their repeated places.

    Each style part becomes two parts. One is used at all `layers` but LARGE, and is not changed.
    The other is used at LARGE, with the style's repeated places; its strength is multiplied by
    `factor` and by the strength of the repetition. Without `repetitions` nothing changes.
    """
    if not repetitions or LARGE not in layers:
        return list(regions)
    result = []
    for region in regions:
        sources = []
        for part in region.sources:
            acting = set(layers if part.layers is None else part.layers)
            sources.append(replace(part, layers=acting - {LARGE}))
            if LARGE in acting:
                own = repetitions[part.style]
                weights = own.weights if part.weights is None else own.weights * part.weights
                strength = factor * own.strength * part.strength
                sources.append(replace(part, layers={LARGE}, weights=weights, strength=strength))
        result.append(replace(region, sources=tuple(sources)))
    return result
