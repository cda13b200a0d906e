"""How targets read pictures through the network: features at layers, and moments of features."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from styletransfer.features.extractor import FeatureExtractor
from styletransfer.losses.moments import Moments, moments

# A layer and the weights (h, w) of its positions, or None for equal weights.
WeightedLayer = tuple[str, Tensor | None]


class Reader(Protocol):
    """`WholeReader` and `Scan`, which works in tiles, follow this protocol."""

    @property
    def extractor(self) -> FeatureExtractor:
        """The frozen network."""

    def features(self, image: Tensor, layers: Collection[str]) -> dict[str, Tensor]:
        """Return layer -> features (1, C, h, w) of an image (1, 3, H, W)."""

    def moments(self, image: Tensor, weighted: Sequence[WeightedLayer]) -> list[Moments]:
        """Return the moments of the image's features at each weighted layer."""


@dataclass(frozen=True)
class WholeReader:
    """A whole reader runs the network on whole pictures; each one passes no more than it needs."""

    extractor: FeatureExtractor
    with_mean: bool  # whether the moments include the mean

    def features(self, image: Tensor, layers: Collection[str]) -> dict[str, Tensor]:
        """Return layer -> features (1, C, h, w) of an image (1, 3, H, W)."""
        return self.extractor(image, layers) if layers else {}

    def moments(self, image: Tensor, weighted: Sequence[WeightedLayer]) -> list[Moments]:
        """Return the moments of the image's features at each weighted layer."""
        seen = self.features(image, {layer for layer, _ in weighted})
        measured: dict[int, Moments] = {}
        for name in list(seen):  # frees large features once their moments are known
            features = seen.pop(name)
            for index, (layer, weights) in enumerate(weighted):
                if layer == name:
                    measured[index] = moments(features, self.with_mean, weights)
        return [measured[index] for index in range(len(weighted))]
