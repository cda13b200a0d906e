"""From a region of the picture to the positions of a layer: how much of the region each sees."""

from collections.abc import Collection

from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, max_pool2d

from styletransfer.features.extractor import FeatureExtractor, is_pool

# Below so many positions in all, a region has vanished from a layer: nothing is divided by about 0.
FEWEST = 1.0


def at_layers(
    extractor: FeatureExtractor, weights: Tensor, layers: Collection[str], propagation: str
) -> dict[str, Tensor | None]:
    """Return layer -> weights (h, w) in [0, 1] of its positions, None where the region vanishes.

    Args:
        weights: (1, 1, H, W) in [0, 1], of the pixels.
        layers: which are wanted; each has at least one position.
        propagation: average, the mean over the pixels that a position stands for; or inside, 1
            only where a position sees nothing outside of the region (Gatys et al. 2017,
            arXiv:1611.07865, section 4). A region that vanishes inside is averaged instead.
    """
    averaged = _averaged(extractor, weights, layers)
    seen = _inside(extractor, weights, layers) if propagation == "inside" else averaged
    positions: dict[str, Tensor | None] = {}
    for layer in layers:
        weights = averaged[layer] if seen[layer].sum() < FEWEST else seen[layer]
        positions[layer] = None if weights.sum() < FEWEST else weights[0, 0]
    return positions


def vanished(
    extractor: FeatureExtractor, weights: Tensor, layers: Collection[str], propagation: str
) -> list[str]:
    """Return the layers at which a region vanishes, inside or altogether; see `at_layers`."""
    look = _inside if propagation == "inside" else _averaged
    return [name for name, seen in look(extractor, weights, layers).items() if seen.sum() < FEWEST]


def _averaged(
    extractor: FeatureExtractor, weights: Tensor, layers: Collection[str]
) -> dict[str, Tensor]:
    """Return layer -> (1, 1, h, w), the mean over the pixels that a position stands for."""
    strides = {layer: extractor.stride(layer) for layer in layers}
    return {
        layer: avg_pool2d(weights, stride) if stride > 1 else weights
        for layer, stride in strides.items()
    }


def _inside(
    extractor: FeatureExtractor, weights: Tensor, layers: Collection[str]
) -> dict[str, Tensor]:
    """Return layer -> (1, 1, h, w), 1 less the most that a position sees of the outside.

    The outside grows as the receptive fields do: convolutions and pools take its maximum.
    """
    outside, inside = 1 - weights, {}
    for name, layer in extractor.ended_at(layers).layers.items():
        if isinstance(layer, nn.Conv2d):
            reach = int(layer.padding[0])
            outside = max_pool2d(outside, 2 * reach + 1, stride=1, padding=reach)
        elif is_pool(layer):
            outside = max_pool2d(outside, 2)
        if name in layers:
            inside[name] = 1 - outside
    return inside
