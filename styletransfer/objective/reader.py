"""Readers run the network on pictures, and return features at layers, or moments of features."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from styletransfer.features.extractor import FeatureExtractor
from styletransfer.losses.moments import Moments, moments

# A layer and the weights (h, w) of its positions, or None for equal weights.
WeightedLayer = tuple[str, Tensor | None]


class Reader(Protocol):
    """`WholeReader` and `Scan` (which runs the network in tiles) follow this protocol."""

    @property
    def extractor(self) -> FeatureExtractor:
        """The frozen network."""

    def features(self, image: Tensor, layers: Collection[str]) -> dict[str, Tensor]:
        """Return layer -> features (1, C, h, w) of an image (1, 3, H, W)."""

    def moments(self, image: Tensor, weighted: Sequence[WeightedLayer]) -> list[Moments]:
        """Return the moments of the image's features for each (layer, weights) in `weighted`."""


@dataclass
class WholeReader:
    """A whole reader runs the network on whole pictures, up to the deepest layer that is read."""

    extractor: FeatureExtractor
    with_mean: bool  # whether the moments include the mean

    def features(self, image: Tensor, layers: Collection[str]) -> dict[str, Tensor]:
        """Return layer -> features (1, C, h, w) of an image (1, 3, H, W)."""
        return self.extractor(image, layers) if layers else {}

    def moments(self, image: Tensor, weighted: Sequence[WeightedLayer]) -> list[Moments]:
        """Return the moments of the image's features for each (layer, weights) in `weighted`."""
        seen = self.features(image, {layer for layer, _ in weighted})
        measured: dict[int, Moments] = {}
        for name in list(seen):  # a layer's features are freed once its moments are known
            features = seen.pop(name)
            for index, (layer, weights) in enumerate(weighted):
                if layer == name:
                    measured[index] = moments(features, self.with_mean, weights)
        return [measured[index] for index in range(len(weighted))]


class KeepingReader(WholeReader):
    """A keeping reader caches the features of pictures that are read several times.

    `kept` holds pairs: a picture, and layers at which it will be read. The network runs once on
    each of these pictures, for all of its layers.
    """

    def __init__(
        self,
        extractor: FeatureExtractor,
        with_mean: bool,
        kept: Iterable[tuple[Tensor, Collection[str]]],
    ) -> None:
        super().__init__(extractor, with_mean)
        self._layers: defaultdict[int, set[str]] = defaultdict(set)
        for image, layers in kept:
            self._layers[id(image)].update(layers)
        self._seen: dict[int, dict[str, Tensor]] = {}

    def features(self, image: Tensor, layers: Collection[str]) -> dict[str, Tensor]:
        """Return layer -> features (1, C, h, w) of an image (1, 3, H, W)."""
        if id(image) not in self._layers:
            return super().features(image, layers)
        if id(image) not in self._seen:
            self._seen[id(image)] = super().features(image, self._layers[id(image)])
        return {layer: self._seen[id(image)][layer] for layer in layers}
