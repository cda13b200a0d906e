"""What a picture is compared with: the only place where targets and their weights are made."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from styletransfer.config import ObjectiveConfig
from styletransfer.features.extractor import FeatureExtractor
from styletransfer.functions.moments import Moments
from styletransfer.losses import StyleMeasure, get_style_loss, mean_square
from styletransfer.objective.inputs import Inputs
from styletransfer.objective.positions import at_layers
from styletransfer.objective.terms import layer_weights
from styletransfer.pictures.images import resize, scaled_size

# Longer side in pixels beyond which content losses are relative to the content image at that size.
REFERENCE_SIDE = 512
# Shorter side in pixels that such a reduction leaves, enough for the deepest layer.
REFERENCE_LEAST = 64

# A layer and the weights (h, w) of its positions, or None for all alike.
Place = tuple[str, Tensor | None]
# (image, layers) -> layer -> features (1, C, h, w).
Features = Callable[[Tensor, Collection[str]], dict[str, Tensor]]
# (image, places) -> the moments of the image's features at each of them.
Measured = Callable[[Tensor, Sequence[Place]], list[Moments]]


@dataclass(frozen=True)
class Target:
    """What the picture is to have at a layer, and one of its regions.

    Attributes:
        name: of the loss, such as "content/relu4_2", "style/relu1_1" or "style/sky/relu1_1".
        value: P (1, C, h, w), the content's features, or the statistic of the style's moments.
        weight: the linear weight of the loss in the objective.
        positions: (h, w), the weights of the region's positions; None for all alike.
    """

    name: str
    value: Tensor
    weight: float
    positions: Tensor | None = None


# layer -> style targets, one for each region.
StyleTargets = dict[str, list[Target]]


@dataclass(frozen=True)
class Targets:
    """All targets of one objective.

    Attributes:
        contents: layer -> content target.
        styles: layer -> style targets, one for each region.
        measure: how styles are compared.
    """

    contents: dict[str, Target]
    styles: StyleTargets
    measure: StyleMeasure


def make_targets(
    config: ObjectiveConfig,
    extractor: FeatureExtractor,
    pictures: Inputs,
    features: Features,
    measured: Measured,
    styles: StyleTargets | None = None,
) -> Targets:
    """Return the targets, with weights as `config.normalization` says.

    Relative to the target, each loss is divided by its value for features that are all zero, and
    a content loss multiplied by its network's `content_gains`, so that one set of weights serves
    every network, layer and size. For the last see `content_weights`.

    Args:
        config: layers, weights, the style loss, the propagation and the normalisation.
        extractor: the network.
        pictures: at one scale, each large enough for all layers.
        features: looks at the content image.
        measured: looks at the style images.
        styles: of `style_targets` for the same config, styles and regions; made here by default.
    """
    if styles is None:
        styles = style_targets(config, extractor, pictures, measured)
    seen = features(pictures.content, layer_weights(config)[0])
    small = at_reference(pictures.content)
    known = seen if small is pictures.content else features(small, list(seen))
    weights = content_weights(config, extractor, known)
    contents = {layer: content_target(layer, seen[layer], weights[layer]) for layer in seen}
    return Targets(contents, styles, get_style_loss(config.style_loss))


def content_target(layer: str, value: Tensor, weight: float) -> Target:
    """Return the content target at a layer, or a part of its rows."""
    return Target(f"content/{layer}", value, weight)


def content_weights(
    config: ObjectiveConfig, extractor: FeatureExtractor, features: Mapping[str, Tensor]
) -> dict[str, float]:
    """Return layer -> weight of its content loss.

    Args:
        config: weights and normalisation.
        extractor: the network.
        features: layer -> features (1, C, h, w) of the content image, reduced by `at_reference`.
            The larger a photograph is, the less there is in each position of its features, while
            strokes that are painted on it have as much as ever: relative to its own features at
            its full size, it would have them taken away.
    """
    weights, _ = layer_weights(config)
    if config.normalization == "target":
        for layer, seen in features.items():
            weights[layer] *= extractor.content_gains.get(layer, 1.0) / (_energy(seen) or 1.0)
    return weights


def at_reference(content: Tensor) -> Tensor:
    """Return a content image (1, 3, H, W) reduced to `REFERENCE_SIDE`; itself if no larger."""
    size = (content.shape[2], content.shape[3])
    shorter, longer = sorted(size)
    side = max(REFERENCE_SIDE, round(REFERENCE_LEAST * longer / shorter))
    return resize(content, scaled_size(size, min(side, longer)))


def _energy(features: Tensor) -> float:
    """Return the mean of features^2; row by row, to save memory."""
    rows = features.unbind(-2)
    return sum(mean_square(row.double()).item() for row in rows) / len(rows)


def style_targets(
    config: ObjectiveConfig,
    extractor: FeatureExtractor,
    pictures: Inputs,
    measured: Measured,
) -> StyleTargets:
    """Return layer -> style targets; the content image itself plays no part.

    A region's losses weigh as much as its share of the picture, so that each position weighs the
    same as without regions.

    Args: see `make_targets`.
    """
    _, style_weights = layer_weights(config)
    measure = get_style_loss(config.style_loss)
    found = _style_moments(config, extractor, pictures, list(style_weights), measured)
    styles: StyleTargets = {layer: [] for layer in style_weights}
    for number, region in enumerate(pictures.regions):
        positions = _positions(config, extractor, region.weights, list(style_weights))
        for layer, weight in style_weights.items():
            if (number, layer) not in found or layer not in positions:
                continue
            value = measure.statistic(_average(found[number, layer]))
            blank = _blank(measure, value) if config.normalization == "target" else 1.0
            styles[layer].append(
                Target(
                    name="/".join(part for part in ("style", region.name, layer) if part),
                    value=value,
                    weight=weight * region.share / (blank or 1.0),
                    positions=positions[layer],
                )
            )
    return styles


def _positions(
    config: ObjectiveConfig,
    extractor: FeatureExtractor,
    weights: Tensor | None,
    layers: list[str],
) -> dict[str, Tensor | None]:
    """Return layer -> weights (h, w), None for all alike; no layer from which they vanish."""
    if weights is None:
        return dict.fromkeys(layers)
    found = at_layers(extractor, weights, layers, config.propagation)
    return {layer: seen for layer, seen in found.items() if seen is not None}


def _style_moments(
    config: ObjectiveConfig,
    extractor: FeatureExtractor,
    pictures: Inputs,
    layers: list[str],
    measured: Measured,
) -> dict[tuple[int, str], list[tuple[float, Moments]]]:
    """Return (region, layer) -> the shares and the moments of what its style is made of.

    Each style image is looked at once, whatever the number of regions.
    """
    found: dict[tuple[int, str], list[tuple[float, Moments]]] = defaultdict(list)
    for number, image in enumerate(pictures.styles):
        owners: list[tuple[tuple[int, str], float]] = []
        places: list[Place] = []
        for index, region in enumerate(pictures.regions):
            for source in (each for each in region.sources if each.style == number):
                heard = [each for each in layers if source.layers is None or each in source.layers]
                for place in _positions(config, extractor, source.weights, heard).items():
                    owners.append(((index, place[0]), source.share))
                    places.append(place)
        for (key, share), moments in zip(owners, measured(image, places), strict=True):
            found[key].append((share, moments))
    return found


def _average(parts: list[tuple[float, Moments]]) -> Moments:
    """Return the weighted average of moments; that of one are the very same."""
    if len(parts) == 1:
        return parts[0][1]
    total = sum(share for share, _ in parts)
    means = [moments.mean * (share / total) for share, moments in parts]
    seconds = [moments.second * (share / total) for share, moments in parts]
    return Moments(torch.stack(means).sum(0), torch.stack(seconds).sum(0))


def _blank(measure: StyleMeasure, target: Tensor) -> float:
    """Return the loss of features that are all zero."""
    return measure.distance(torch.zeros_like(target, dtype=torch.float64), target).item()
