"""The targets of an objective: what each loss compares the picture with, and its weight."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from styletransfer.features.tensors import to_float64
from styletransfer.losses import (
    ContentDistance,
    Distance,
    StyleDistance,
    StyleMeasure,
    mean_square,
)
from styletransfer.losses.moments import Moments
from styletransfer.objective.criterion import Criterion
from styletransfer.objective.inputs import Region, at_layers
from styletransfer.objective.reader import Reader, WeightedLayer
from styletransfer.pictures.images import long_enough, resize, scaled_size, size_of

# Longer side in pixels to which `at_reference` reduces a larger picture.
REFERENCE_SIDE = 512
# Smallest shorter side in pixels to which a picture is reduced, even if its longer side is then
# above REFERENCE_SIDE; 64 is enough for the deepest layer.
REFERENCE_LEAST = 64


@dataclass(frozen=True)
class Target:
    """A target is one loss of an objective at one layer, and what it compares the picture with."""

    #: Name of the loss: "content/relu4_2", "match/relu3_1", "style/relu1_1", or, for a region that
    #: is called sky, "style/sky/relu1_1".
    name: str
    distance: Distance  #: the loss, which holds the features or the statistic that it compares with
    weight: float  #: the loss is multiplied by this in the objective


# layer -> its targets, of one kind or of all kinds: content, then match, then style. At a layer a
# region has at most one style target, and at most one more for its calm places.
Targets = dict[str, list[Target]]


def content_targets(criterion: Criterion, reader: Reader, content: Tensor) -> Targets:
    """Return layer -> target of its content loss.

    If `criterion.is_relative`, a loss is divided by its value for features that are all zero, and
    multiplied by the network's `content_gains`, so that one set of weights serves every network,
    layer and size.

    The divisor is measured at the content image (1, 3, H, W) reduced by `at_reference`. A large
    photograph has weaker features at its full size. If the divisor were the mean square of these
    features, the content loss would be so strong that it removes painted strokes.
    """
    layers, small = criterion.contents.keys(), at_reference(content)
    values = reader.features(content, layers)
    reference = values if small is content else reader.features(small, layers)
    targets: Targets = {}
    for layer, weight in criterion.contents.items():
        if criterion.is_relative:
            gain = reader.extractor.content_gains.get(layer, 1.0)
            weight *= gain / (_energy(reference[layer]) or 1.0)
        targets[layer] = [Target(f"content/{layer}", ContentDistance(values[layer]), weight)]
    return targets


def at_reference(content: Tensor) -> Tensor:
    """Return an image (1, 3, H, W) resized to its `reference_size`, which is never larger."""
    return resize(content, reference_size(content))


def reference_size(image: Tensor) -> tuple[int, int]:
    """Return the (height, width) to which `at_reference` reduces an image (1, 3, H, W)."""
    size = size_of(image)
    return scaled_size(size, min(long_enough(size, REFERENCE_SIDE, REFERENCE_LEAST), max(size)))


def _energy(features: Tensor) -> float:
    """Return the mean of features^2, computed row by row to save memory."""
    rows = features.unbind(-2)
    return sum(mean_square(to_float64(row)).item() for row in rows) / len(rows)


def style_targets(
    criterion: Criterion, reader: Reader, styles: Sequence[Tensor], regions: Sequence[Region]
) -> Targets:
    """Return layer -> targets of its style losses, which do not depend on the content image.

    A region's losses are multiplied by the fraction of the picture that it covers, so that each
    position weighs the same as without regions, and by the mean strength of its styles. If
    `criterion.is_relative`, a loss is divided by its value for zero features. `styles` are the
    style images of one level of the coarse-to-fine run, large enough for all layers.
    """
    measure, layers = criterion.measure, list(criterion.styles)
    averages = _style_moments(criterion, reader, styles, regions)
    targets: Targets = {layer: [] for layer in layers}
    for number, region in enumerate(regions):
        positions = at_layers(reader.extractor, region.weights, layers)
        for layer, weight in criterion.styles.items():
            if (number, layer) not in averages or layer not in positions:
                continue
            value = measure.statistic(_average(averages[number, layer]))
            blank = _blank(measure, value) if criterion.is_relative else 1.0
            name = "/".join(part for part in ("style", region.name, layer) if part)
            linear = weight * region.share * region.strength_at(layer) / (blank or 1.0)
            distance = StyleDistance(value, measure, positions[layer])
            targets[layer].append(Target(name, distance, linear))
    return targets


def _style_moments(
    criterion: Criterion, reader: Reader, styles: Sequence[Tensor], regions: Sequence[Region]
) -> dict[tuple[int, str], list[tuple[float, Moments]]]:
    """Return (region index, layer) -> (weight, moments) of each style image that paints it.

    Each style image passes through the network once, for any number of regions.
    """
    parts: dict[tuple[int, str], list[tuple[float, Moments]]] = defaultdict(list)
    for number, image in enumerate(styles):
        owners: list[tuple[tuple[int, str], float]] = []
        weighted: list[WeightedLayer] = []
        for index, region in enumerate(regions):
            for part in region.sources:
                if part.style != number or not part.strength:
                    continue
                acting = criterion.styles if part.layers is None else part.layers
                layers = [layer for layer in criterion.styles if layer in acting]
                for layer, weights in at_layers(reader.extractor, part.weights, layers).items():
                    owners.append(((index, layer), part.share * part.strength))
                    weighted.append((layer, weights))
        for (key, share), moments in zip(owners, reader.moments(image, weighted), strict=True):
            parts[key].append((share, moments))
    return parts


def _average(parts: list[tuple[float, Moments]]) -> Moments:
    """Return the mean of moments with the given weights; a single part is returned unchanged."""
    if len(parts) == 1:
        return parts[0][1]
    total = sum(share for share, _ in parts)
    scaled = [[moment * (share / total) for moment in moments] for share, moments in parts]
    return Moments(*(torch.stack(of_all).sum(0) for of_all in zip(*scaled, strict=True)))


def _blank(measure: StyleMeasure, statistic: Tensor) -> float:
    """Return the style loss of features that are all zero, for the style's `statistic`."""
    target = measure.prepare(to_float64(statistic))
    return measure.compare(to_float64(torch.zeros_like(statistic)), target).item()
